/** A mail server that keeps what it gets. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface ReceivedMail {
  readonly to: string
  /** Unfolded. */
  readonly headers: string
  readonly text: string
  readonly html: string
}

export interface MailServer {
  readonly url: string
  /** What was sent to an address, the earliest first. */
  to(address: string): readonly ReceivedMail[]
  /** Answers mails to an address with this code from now on. */
  answer(address: string, code: number): void
  /** Answers logins with this code from now on. */
  answerLogins(code: number): void
}

/** Decodes quoted-printable and base64, the two forms that bodies have. */
function decoded(part: string): string {
  const [head = '', ...rest] = part.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  if (/base64/i.test(head)) return Buffer.from(body, 'base64').toString('utf8')
  if (!/quoted-printable/i.test(head)) return body
  const bytes = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function read(to: string, source: string): ReceivedMail {
  const [head = ''] = source.split('\r\n\r\n')
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? ''
  const parts = source.split(`--${boundary}`)
  const partOf = (type: string) =>
    decoded((parts.find((part) => part.includes(`Content-Type: ${type}`)) ?? '').trimStart())
  return {
    to,
    headers: head.replace(/\r\n[ \t]+/g, ' ').replaceAll('\r\n', '\n'),
    text: partOf('text/plain'),
    html: partOf('text/html'),
  }
}

export async function startMailServer(t: { teardown(work: () => unknown): void }): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const codes = new Map<string, number>()
  let loginCode = 235
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    onAuth(_auth, _session, done) {
      if (loginCode < 400) done(null, { user: 'known' })
      else done(Object.assign(new Error('bad credentials'), { responseCode: loginCode }))
    },
    onRcptTo({ address }, _, done) {
      const code = codes.get(address) ?? 250
      done(code < 400 ? null : Object.assign(new Error('not now'), { responseCode: code }))
    },
    onData(stream, session, done) {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      stream.on('end', () => {
        const source = Buffer.concat(pieces).toString('utf8')
        for (const { address } of session.envelope.rcptTo) mails.push(read(address, source))
        done()
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(resolve)))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    to: (address) => mails.filter((mail) => mail.to === address),
    answer: (address, code) => void codes.set(address, code),
    answerLogins: (code) => {
      loginCode = code
    },
  }
}
