"""Harvest the whole copies of a registry, as a portal of open data does.

rdflib reads the catalogue, and jsonschema checks each line of JSON. The program ends with an error if the catalogue
lacks a property that DCAT-AP 3 requires, or if a file is not as the catalogue says. It prints a JSON object with the
rows of each file.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
import urllib.request

import jsonschema
import rdflib

BASE, LICENCE, PUBLISHER = sys.argv[1:]

# The optional graph patterns are properties that DCAT-AP recommends, and that this catalogue must have.
FILES = """
PREFIX dcat: <http://www.w3.org/ns/dcat#>
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX spdx: <http://spdx.org/rdf/terms#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
SELECT DISTINCT ?url ?bytes ?rows ?sum ?schema ?licence ?publisher WHERE {
    ?catalogue a dcat:Catalog; dct:title ?title1; dct:description ?text1; dct:publisher ?agent; dcat:dataset ?dataset.
    ?agent a foaf:Agent; foaf:name ?publisher.
    ?dataset a dcat:Dataset; dct:title ?title2; dct:description ?text2; dct:publisher [foaf:name ?publisher];
        dcat:distribution ?file.
    ?file a dcat:Distribution; dcat:accessURL ?page; dcat:downloadURL ?url; dct:license ?licence; dct:title ?title3;
        dct:format ?format; dcat:mediaType ?media; dct:modified ?modified; dcat:byteSize ?bytes;
        dct:extent [rdf:value ?rows]; spdx:checksum [spdx:algorithm ?algorithm; spdx:checksumValue ?sum].
    OPTIONAL { ?file dct:conformsTo ?schema }
    FILTER (lang(?title1) = "uk" && lang(?title2) = "uk" && lang(?title3) = "uk" && isIRI(?licence) && isIRI(?page))
    FILTER (?algorithm = spdx:checksumAlgorithm_sha256)
}
"""


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def described(name, tables):
    """Return the description of a table in a group of tables (CSVW). Check what a group may refer to."""
    by_url = {table["url"]: table["tableSchema"] for table in tables["tables"]}
    for schema in by_url.values():
        for key in schema.get("foreignKeys", []):
            to = key["reference"]
            assert to["columnReference"] in [c["name"] for c in by_url[to["resource"]]["columns"]], key
    return by_url[name]


def check_table(name, text, schema):
    """Compare a CSV file with the description of its table, and return the number of rows."""
    header, *rows = csv.reader(io.StringIO(text.decode("utf-8"), newline=""), strict=True)
    assert header == [c["titles"] for c in schema["columns"]], (name, header)
    for row in rows:
        assert len(row) == len(header), (name, row)
        for column, cell in zip(schema["columns"], row):
            assert column["datatype"] == "string" or cell == "" or float(cell) is not None, (name, column, cell)
    key = [header.index(k) for k in ([schema["primaryKey"]] if isinstance(schema["primaryKey"], str) else schema["primaryKey"])]
    assert len({tuple(row[i] for i in key) for row in rows}) == len(rows), (name, "the primary key is not unique")
    return len(rows)


def check_lines(text, schema):
    """Check each line of JSON with the schema, and return the number of lines."""
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    lines = [json.loads(line) for line in gzip.decompress(text).splitlines()]
    for line in lines:
        validator.validate(line)
        for wrong in ({"items": "none"}, {"id": 5}, {"documents": [7]}):  # the schema must not accept everything
            assert not validator.is_valid(line | wrong), wrong
    return len(lines)


graph = rdflib.Graph()
graph.parse(data=fetch(BASE + "/data/catalog.jsonld").decode("utf-8"), format="json-ld")
found = {}
for url, size, rows, checksum, schema, licence, publisher in graph.query(FILES):
    assert (str(licence), str(publisher)) == (LICENCE, PUBLISHER), (licence, publisher)
    content = fetch(str(url))
    name = str(url).removeprefix(BASE + "/data/")
    assert len(content) == int(size), (name, len(content), size)
    assert hashlib.sha256(content).hexdigest() == checksum.toPython().hex(), (name, checksum)
    if name.endswith(".csv"):
        counted = check_table(name, content, described(name, json.loads(fetch(str(schema)))))
    elif name.endswith(".jsonl.gz"):
        counted = check_lines(content, json.loads(fetch(str(schema))))
    else:
        counted = len(json.loads(content)["features"])
    assert counted == int(rows), (name, counted, rows)
    found[name] = counted
print(json.dumps(found))
