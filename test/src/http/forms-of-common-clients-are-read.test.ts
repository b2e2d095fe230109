/** Forms as clients write them: quotes and other scripts in names, parts with headers, quoted boundaries. */
import { Readable } from 'node:stream'
import t from 'tap'
import { formContent } from '../../../src/http/form-reader.ts'

const LIMITS = { maxFields: 10, maxFieldBytes: 1024, maxFiles: 4 }
const held = { take: () => null }

interface SeenFile {
  readonly field: string
  readonly name: string
  readonly text: string
}

async function read(body: string, contentType = 'multipart/form-data; boundary=b') {
  const files: SeenFile[] = []
  const form = formContent(Readable.from([Buffer.from(body)]), { contentType, limitBytes: 10_000, held })
  const fields = await form.read(LIMITS, async ({ field, name, content }) => {
    const pieces: Buffer[] = []
    for await (const piece of content) pieces.push(piece)
    files.push({ field, name, text: String(Buffer.concat(pieces)) })
  })
  return { fields, files }
}

const part = (head: string, content = 'x', boundary = 'b') => `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`
const disposition = (rest: string) => `Content-Disposition: form-data; ${rest}`

t.test('names of files', async (t) => {
  for (const [client, written, name] of [
    ['curl until 7.80', 'filename="a \\"cat\\".png"', 'a "cat".png'],
    ['curl, undici and browsers', 'filename="a %22cat%22.png"', 'a %22cat%22.png'],
    ['curl and undici', 'filename="Katze ☂ 猫.png"', 'Katze ☂ 猫.png'],
    ['python requests', "filename*=utf-8''%E7%8C%AB.png", '猫.png'],
    ['httpx', 'filename="猫.png"', '猫.png'],
    ['both', 'filename="cat.png"; filename*=UTF-8\'\'%E7%8C%AB.png', '猫.png'],
    ['without quotes', 'filename=cat.png', 'cat.png'],
    ['a browser in which no file was chosen', 'filename=""\r\nContent-Type: application/octet-stream', ''],
  ] as const) {
    const { files } = await read(`${part(disposition(`name="image"; ${written}`))}--b--\r\n`)
    t.same(files, [{ field: 'image', name, text: 'x' }], client)
  }
})

t.test('parts with additional headers', async (t) => {
  for (const [client, head] of [
    ['OkHttp', 'Content-Disposition: form-data; name="prompt"\r\nContent-Length: 1'],
    [
      'Apache',
      `${disposition('name="prompt"')}\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: 8bit`,
    ],
    ['lower case', 'content-disposition:form-data;name=prompt'],
    ['JSON', `${disposition('name="prompt"')}\r\nContent-Type: application/json`],
  ] as const)
    t.same(await read(`${part(head)}--b--\r\n`), { fields: [['prompt', 'x']], files: [] }, client)
})

t.test('what is around the parts', async (t) => {
  const one = { fields: [['prompt', 'x']], files: [] }
  const prompt = part(disposition('name="prompt"'))
  t.same(await read(`${prompt}--b--`), one, 'no line end behind the last boundary')
  t.same(await read(`preamble\r\n${prompt}--b--\r\nepilogue`), one)
  const odd = part(disposition('name="prompt"'), 'x', "a b'()+_,-./:=?")
  const type = `multipart/form-data; charset=utf-8; boundary="a b'()+_,-./:=?"`
  t.same(
    await read(`${odd}--a b'()+_,-./:=?--\r\n`, type),
    one,
    'a boundary of all characters that it may have',
  )
  t.same(await read(`${part(disposition('name="prompt"'), '')}--b--\r\n`), {
    fields: [['prompt', '']],
    files: [],
  })
  t.same(await read('--b--\r\n'), { fields: [], files: [] }, 'no part at all')
})
