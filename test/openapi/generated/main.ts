/** Makes every kind of call with the generated client, and prints how many were made. */
import { chat, media, reading, records, responses, sound, vectors } from './calls.ts'
import { countCalls, openClient, type TollgateClient } from './client.ts'
import { administer, operate } from './management.ts'

const [, , baseUrl = '', token = ''] = process.argv
/** One transparent pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

const operator = openClient(baseUrl, token)
const client = openClient(baseUrl, await administer(operator))
const png = new File([Buffer.from(PNG, 'base64')], 'pixel.png', { type: 'image/png' })
const pictures = (of: TollgateClient) => media(of, png)
const parts = [chat, responses, vectors, sound, reading, pictures, records]
for (const part of [...parts.map((make) => () => make(client)), () => operate(operator)])
  await part().catch((error: Error) => {
    process.stderr.write(`${error.stack}\n`)
    process.exitCode = 1
  })
process.stdout.write(`${countCalls()} calls\n`)
