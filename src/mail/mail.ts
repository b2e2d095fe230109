/** Sends mails by SMTP. */
import type { MailSettings } from '../../schemas/config/settings.ts'
import { cutText } from '../core/json/cut.ts'
import { type MailContent, renderMail } from './render.ts'

const TIMEOUT_MS = 20_000
const MAX_CONNECTIONS = 4
const MAX_ANSWER_CHARS = 500

interface MailOutcome {
  readonly isAccepted: boolean
  /** The server takes this mail to this address never: no other login and no other sender would help. */
  readonly isRefused: boolean
  /** Reply code of the server; null without a reply. */
  readonly status: number | null
  readonly answer: string
}

/** Steps at which a server refuses the address or the mail; at those before, the login or the sender. */
const MAIL_STEPS: ReadonlySet<string | undefined> = new Set(['RCPT TO', 'DATA'])
const LOGIN_WANTED = 530

export interface Mail {
  /**
   * Sends a mail. Never rejects for what the server does.
   * @param id makes its Message-ID: a mail that is sent twice is known as one
   */
  send(id: string, address: string, content: MailContent): Promise<MailOutcome>
  close(): void
}

interface MailOptions extends MailSettings {
  /** Base of the links, without a slash at its end. */
  readonly publicUrl: string
}

export function openMail({ url, from, publicUrl }: MailOptions): Mail {
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url,
      pool: true,
      maxConnections: MAX_CONNECTIONS,
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      // A mail has no files, and names none.
      disableFileAccess: true,
      disableUrlAccess: true,
    } as never)
  }
  /** The library is loaded for the first mail. */
  let opened: ReturnType<typeof open> | null = null
  const host = new URL(publicUrl).hostname
  return {
    async send(id, address, content) {
      const mail = renderMail(content, `${publicUrl}/console/`)
      opened ??= open()
      const transport = await opened
      try {
        const sent = (await transport.sendMail({
          from,
          // As an object: an address is never read as a list.
          to: { name: '', address },
          messageId: `<${id}@${host}>`,
          ...mail,
          headers: { 'Auto-Submitted': 'auto-generated' },
        })) as unknown as { response: string }
        return {
          isAccepted: true,
          isRefused: false,
          status: readCode(sent.response),
          answer: cutText(sent.response, MAX_ANSWER_CHARS),
        }
      } catch (error) {
        const { responseCode, response, message, command } = error as Error & {
          responseCode?: number
          response?: string
          command?: string
        }
        const answer = cutText(response ?? message, MAX_ANSWER_CHARS)
        const status = responseCode ?? null
        const isPermanent = status !== null && status >= 500 && status !== LOGIN_WANTED
        return { isAccepted: false, isRefused: isPermanent && MAIL_STEPS.has(command), status, answer }
      }
    },
    close: () => void opened?.then((transport) => transport.close()),
  }
}

const readCode = (response: string): number | null => {
  const code = Number.parseInt(response, 10)
  return Number.isNaN(code) ? null : code
}
