/** Forms of JSON that cost a careless reader more than their length: each is a value of about so many bytes. */

/** Returns the JSON text of a value of about `bytes` bytes. */
export type Shape = (bytes: number) => string

const repeated = (item: string, bytes: number): string =>
  Array.from({ length: Math.max(1, Math.floor(bytes / (Buffer.byteLength(item) + 1))) }, () => item).join()
const list = (item: string, bytes: number): string => `[${repeated(item, bytes)}]`
const numbered = (bytes: number, size: number, item: (index: number) => string): string =>
  Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, index) => item(index)).join()
const object = (bytes: number, size: number, name: (index: number) => string, value = '1'): string =>
  `{${numbered(bytes, size, (index) => `"${name(index)}":${value}`)}}`
const text = (piece: string, bytes: number): string =>
  `"${piece.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(piece))))}"`
const nested = (open: string, close: string, levels: number, inside: string): string =>
  open.repeat(levels) + inside + close.repeat(levels)

/** Within the levels that a body may have. */
const DEEP = 480
const MARKS = '\u0301\u0316'
const MANY_NAMES = 1_000

export const SHAPES: Readonly<Record<string, Shape>> = {
  'lists in lists': (bytes) => list(nested('[', ']', DEEP, ''), bytes),
  'objects in objects': (bytes) => list(nested('{"a":', '}', DEEP, '1'), bytes),
  'long lists in objects in objects': (bytes) =>
    nested('{"a":', '}', DEEP, list(list('1', 300), Math.max(1, bytes - 6 * DEEP))),
  'a long list at each level': (bytes) =>
    Array.from({ length: 60 }).reduce<string>(
      (inside) => `{"b":[${repeated('0', bytes / 60)}],"a":${inside}}`,
      '1',
    ),
  'lists that halve': (bytes) => {
    let value = '0'
    while (2 * value.length + 3 < bytes) value = `[${value},${value}]`
    return value
  },
  numbers: (bytes) => list('0', bytes),
  words: (bytes) => list('null', bytes),
  'empty objects': (bytes) => list('{}', bytes),
  'empty lists': (bytes) => list('[]', bytes),
  'empty texts': (bytes) => list('""', bytes),
  'short texts': (bytes) => list('"ab"', bytes),
  'white space': (bytes) => `[${' \n\t\r'.repeat(bytes / 4)}1]`,
  'an object of many names': (bytes) => object(Math.min(bytes, 9 * MANY_NAMES), 9, (index) => `n${index}`),
  'objects of many names': (bytes) =>
    list(
      object(9 * 500, 9, (index) => `n${index}`),
      bytes,
    ),
  'objects of one name': (bytes) => list('{"a":1}', bytes),
  'names in other letters': (bytes) =>
    list(
      object(1_000, 14, (index) => `größe${index}`),
      bytes,
    ),
  'names that differ in case': (bytes) => list('{"name":1,"Name":2,"NAME":3}', bytes),
  'names in escapes': (bytes) => list(`{"${'\\u0061\\u0301'.repeat(4)}":1}`, bytes),
  'the name of the prototype': (bytes) => list(nested('{"__proto__":', '}', 20, '1'), bytes),
  'a long name': (bytes) => `{${text('n', bytes)}:1}`,
  'a long name in other letters': (bytes) => `{${text('ﷺ', bytes)}:1}`,
  'a name of combining marks': (bytes) => `{${text(MARKS, bytes)}:1}`,
  'names of combining marks': (bytes) => list(`{${text(MARKS, 220)}:1}`, bytes),
  'a text': (bytes) => text('word ', bytes),
  'a text of combining marks': (bytes) => text(MARKS, bytes),
  'a text of combining marks and letters that become some': (bytes) =>
    text('\u0316\uff9e\u0301\uff9f', bytes),
  'a text of escaped quotes': (bytes) => text('\\"', bytes),
  'a text of backslashes': (bytes) => text('\\\\', bytes),
  'a text of escapes': (bytes) => text('\\u0301\\u0316', bytes),
  'a text of halves of characters': (bytes) => text('\\ud800a', bytes),
  'a text of white space': (bytes) => text(' \\t\\n', bytes).replace(/"$/, 'x"'),
  'a text of one word': (bytes) => text('a', bytes),
  'a text of one sign': (bytes) => text('-', bytes),
  'a text in flags': (bytes) => text('--dur 5 — hd = ', bytes),
  'a text of tags': (bytes) => text('<!-- <a ', bytes),
  'a text of brackets': (bytes) => text('[[!(', bytes),
  'a text without spaces': (bytes) => text('漢字かな', bytes),
  'a text in Thai': (bytes) => text('กำแพงเมือง', bytes),
  'a text of sigmas': (bytes) => text('Σ\u0301', bytes),
  'a file in base64': (bytes) => `"data:image/png;base64,${text('QUJD', bytes).slice(1)}`,
  'links to files': (bytes) => list('{"type":"image_url","image_url":{"url":"https://a.example/b"}}', bytes),
  'a long number': (bytes) => `1${'0'.repeat(bytes)}1`,
  'a long fraction': (bytes) => `0.${'0'.repeat(bytes)}1`,
  'numbers of many digits': (bytes) => list(`1${'0'.repeat(900)}1`, bytes),
  'numbers with exponents': (bytes) => list('1e5', Math.min(bytes, 18_000)),
  'schemas in schemas': (bytes) =>
    list(nested('{"type":"object","properties":{"a":', '}}', 30, '{"type":"string"}'), bytes),
  'references to one long definition in a schema': (bytes) =>
    `{"type":"object","$defs":{"a":{"enum":[${numbered(bytes / 2, 10, (index) => `"v${index}"`)}]}},"properties":{${numbered(Math.min(bytes / 2, 25_000), 30, (index) => `"p${index}":{"$ref":"#/$defs/a"}`)}}}`,
  'definitions in a row in a schema': (bytes) =>
    `{"$ref":"#/$defs/d0","$defs":{${numbered(Math.min(bytes, 35_000), 35, (index) => `"d${index}":{"$ref":"#/$defs/d${index + 1}"}`)}}}`,
  'members of a schema': (bytes) =>
    `{"allOf":[${numbered(bytes, 80, (index) => `{"type":"object","required":["a${index}"],"properties":{"a${index}":{}}}`)}]}`,
  'types of a schema': (bytes) =>
    `{"type":[${numbered(bytes / 2, 10, (index) => `"t${index}"`)}],"enum":[${numbered(bytes / 2, 10, (index) => `"v${index}"`)}]}`,
  'alternatives in a schema': (bytes) =>
    `{"type":"object","properties":{${numbered(bytes / 2, 14, (index) => `"p${index % 900}${index}":{}`)}},"anyOf":[${repeated('{"required":["a"]}', bytes / 2)}]}`,
}
