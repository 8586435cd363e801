// Reads the first sheet of an XLSX file with a library, and prints its rows as JSON: read.cjs LIBRARY FILE.
const fs = require("fs");

const readers = {
  async exceljs(file) {
    const book = new (require("exceljs").Workbook)();
    await book.xlsx.readFile(file);
    const rows = [];
    book.worksheets[0].eachRow({ includeEmpty: true }, (row) => rows.push(row.values.slice(1)));
    return rows;
  },
  async xlsx(file) {
    const { read, utils } = require("xlsx");
    const book = read(fs.readFileSync(file));
    return utils.sheet_to_json(book.Sheets[book.SheetNames[0]], { header: 1, blankrows: true });
  },
  "read-excel-file": (file) => require("read-excel-file/node").default(file),
};

readers[process.argv[2]](process.argv[3]).then((rows) => console.log(JSON.stringify(rows)));
