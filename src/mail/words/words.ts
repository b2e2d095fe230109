/** The texts of mails. A name in braces is replaced by a value. */
import type { ServiceMail } from '../../../schemas/notifications/delivery.ts'
import type { EventType } from '../../../schemas/notifications/event.ts'

interface MailWords {
  /** Also the heading. */
  readonly subject: string
  readonly text: string
  /** On the link, where there is one. */
  readonly button: string
}

export interface Words {
  readonly service: Readonly<Record<ServiceMail, MailWords>>
  readonly event: Readonly<Record<EventType, Omit<MailWords, 'button'>>>
  /** On the link of an event, which leads to the console. */
  readonly open: string
  readonly footer: { readonly service: string; readonly event: string }
}
