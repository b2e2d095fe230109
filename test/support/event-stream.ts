/** Writes the framing of AWS event streams, apart from the code that reads it. */
import { crc32 } from 'node:zlib'

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function header(name: string, value: string): Buffer {
  const text = Buffer.from(value)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(text.length)
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, text])
}

export function message(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const fields = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)))
  const body = Buffer.from(payload)
  const lengths = Buffer.concat([uint32(16 + fields.length + body.length), uint32(fields.length)])
  const begun = Buffer.concat([lengths, uint32(crc32(lengths)), fields, body])
  return Buffer.concat([begun, uint32(crc32(begun))])
}

/** An event of a model's answer, as Bedrock sends it. */
export const chunk = (event: object): Buffer =>
  message(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({ bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abcd' }),
  )

export const exception = (kind: string, text: string): Buffer =>
  message(
    { ':exception-type': kind, ':content-type': 'application/json', ':message-type': 'exception' },
    JSON.stringify({ message: text }),
  )
