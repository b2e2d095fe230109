/** Operations of alerts: thresholds of an account, and the emails that each user wants. */

import type { SignedIn } from '../../../schemas/accounts/people.ts'
import { Failure } from '../../../schemas/failure.ts'
import {
  showAlerts,
  showEmailChoices,
  updateAlerts,
  updateEmailChoices,
} from '../../../schemas/management/notifications/alerts.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { EMAILED_EVENTS, INSTALLATION, listEvents } from '../../../schemas/notifications/event.ts'
import type { Alerts } from '../../../src/postgres/notifications/repository.ts'
import { implementWith } from '../operation.ts'
import { requireSignedIn } from '../people/sessions.ts'

export interface AlertServices {
  /** Whether a mail server is configured. */
  readonly hasMail: boolean
}

const alertsShape = (accountId: string, threshold: Credits | null) => ({
  account_id: accountId,
  balance_low: threshold === null ? null : printCredits(threshold),
})

/** Returns the accounts of which a user may be notified, each with whether its events come unasked. */
function findNotifiable({ user, access }: SignedIn) {
  const accounts = access
    .filter(({ role }) => role !== 'member')
    .map(({ accountId, name, role }) => ({ accountId, name, isDefault: role === 'owner' }))
  if (user.installationRole !== 'operator') return accounts
  return [...accounts, { accountId: INSTALLATION, name: 'Tollgate', isDefault: true }]
}

async function readChoices(database: { readonly alerts: Alerts }, signedIn: SignedIn, hasMail: boolean) {
  const chosen = await database.alerts.readEmailChoices(signedIn.user.id)
  return {
    is_sent: hasMail,
    accounts: findNotifiable(signedIn).map(({ accountId, name, isDefault }) => {
      const available = listEvents(accountId)
      const usual = isDefault ? EMAILED_EVENTS : []
      const events = chosen.get(accountId) ?? usual
      return {
        account_id: accountId,
        name,
        available,
        events: available.filter((event) => events.includes(event)),
      }
    }),
  }
}

const implement = implementWith<AlertServices>()

export const alertOperations = [
  implement(showAlerts, async ({ database }, { account_id: accountId }) =>
    alertsShape(accountId, await database.alerts.readLowBalance(accountId)),
  ),
  implement(updateAlerts, ({ write }, { account_id: accountId, balance_low: threshold }) =>
    write(async (writing) => {
      await writing.alerts.setLowBalance(accountId, threshold)
      return alertsShape(accountId, threshold)
    }),
  ),
  implement(showEmailChoices, (context, _, { hasMail }) =>
    readChoices(context.database, requireSignedIn(context), hasMail),
  ),
  implement(updateEmailChoices, async (context, { account_id: accountId, events }, { hasMail }) => {
    const signedIn = requireSignedIn(context)
    if (!findNotifiable(signedIn).some((one) => one.accountId === accountId))
      throw new Failure('not_found', `There is no account ${accountId} of which you can be notified.`)
    const known = listEvents(accountId)
    return context.write(async (writing) => {
      const wanted = known.filter((event) => events.includes(event))
      await writing.alerts.setEmailChoices(signedIn.user.id, accountId, wanted)
      return readChoices(writing, signedIn, hasMail)
    })
  }),
]
