/** Operations that go through a person's mailbox: recovery, and another address. No answer tells whether an email is known. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../../schemas/failure.ts'
import { changeEmail } from '../../../schemas/management/people/profile.ts'
import { confirmEmail, recover } from '../../../schemas/management/people/sign-in.ts'
import { clientNetwork } from '../../../src/core/keys/address-prefix.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import { normalizeEmail } from '../../../src/core/people/email.ts'
import { countAttempt, implementForPeople, type PeopleServices, readEmail } from './rules.ts'
import { requireSignedIn } from './sessions.ts'

const LINK_MINUTES = 15
const NEW_EMAIL_MINUTES = 24 * 60
/** Longer than the writing of a mail takes: whether one is written is not seen by its time. */
const ANSWER_MS = 300

function assertMail({ hasMail }: PeopleServices): void {
  if (!hasMail)
    throw new Failure(
      'conflict',
      'The installation sends no email: ask an operator, who can make a link to sign in.',
    )
}

const linkIsOver = (): Failure =>
  new Failure('invalid_request', 'The link was used before, or is over: ask for another one.')

export const emailOperations = [
  implementForPeople(recover, async ({ database, visit, write }, input, services) => {
    assertMail(services)
    const email = normalizeEmail(input.email)
    const over = sleep(ANSWER_MS)
    await countAttempt(database, { address: clientNetwork(visit.address), account: `recovery ${email}` })
    const user = await database.users.findByEmail(email)
    if (user?.enabled) {
      const token = generateToken()
      await write(async (writing) => {
        await writing.sessions.createLink({
          tokenHash: hashToken(token),
          userId: user.id,
          minutes: LINK_MINUTES,
          isMailed: true,
        })
        const link = `${services.publicUrl}/console/sign-in#link=${token}`
        await writing.deliveries.sendMail(user.email, {
          mail: 'recovery',
          locale: user.locale,
          values: {},
          link,
        })
      })
    }
    await over
    return { email }
  }),
  implementForPeople(changeEmail, async (context, input, services) => {
    assertMail(services)
    const { database, visit, write } = context
    const { user } = requireSignedIn(context)
    const email = readEmail(input.email)
    const over = sleep(ANSWER_MS)
    await countAttempt(database, { address: clientNetwork(visit.address), account: `new email ${user.id}` })
    if ((await database.users.findByEmail(email)) === null) {
      const token = generateToken()
      await write(async (writing) => {
        const ticket = { tokenHash: hashToken(token), purpose: 'new_email', userId: user.id } as const
        await writing.tickets.void(user.id, ticket.purpose)
        await writing.tickets.create(ticket, { email }, NEW_EMAIL_MINUTES)
        const link = `${services.publicUrl}/console/confirm-email#token=${token}`
        await writing.deliveries.sendMail(email, { mail: 'new_email', locale: user.locale, values: {}, link })
      })
    }
    await over
    return { email }
  }),
  implementForPeople(confirmEmail, async ({ database, write }, { token }) => {
    const waiting = { tokenHash: hashToken(token), purpose: 'new_email' } as const
    const userId = await database.tickets.findUser(waiting)
    if (userId === null) throw linkIsOver()
    return write(async (writing) => {
      const asked = await writing.tickets.take<{ readonly email: string }>({ ...waiting, userId })
      if (asked === null) throw linkIsOver()
      const before = await writing.users.show(userId)
      const { email, locale } = await writing.users.setEmail(userId, asked.email)
      await writing.deliveries.sendMail(before.email, {
        mail: 'email_changed',
        locale,
        values: { email },
        link: null,
      })
      return { email }
    })
  }),
]
