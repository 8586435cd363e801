// Prints the metadata of a Parquet file and its rows as lines of JSON, as hyparquet reads
// them. Times are microseconds since the epoch, in a text.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const { resolve } = createRequire(process.argv[3] + '/') // the folder node_modules
const load = (name) => import(pathToFileURL(resolve(name)))
const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await load('hyparquet')
const { compressors } = await load('hyparquet-compressors')

const file = await asyncBufferFromFile(process.argv[2])
const metadata = await parquetMetadataAsync(file)
const pairs = (metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value])
console.log(JSON.stringify({ groups: metadata.row_groups.length, properties: Object.fromEntries(pairs) }))
const parsers = { timestampFromMicroseconds: String }
for (const row of await parquetReadObjects({ file, compressors, parsers })) {
  console.log(JSON.stringify(row))
}
