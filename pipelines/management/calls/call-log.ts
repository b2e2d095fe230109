/** Operations on the call log as a whole. */
import { importLog } from '../../../schemas/management/call-log.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { CallAudit } from '../../../src/clickhouse/call-log.ts'
import { bookLogged, findUnbooked, sumUnbooked } from '../../call-log/unbooked.ts'
import { implementWith } from '../operation.ts'

const implement = implementWith<{ readonly callLog: CallAudit }>()

export const callLogOperations = [
  implement(importLog, async ({ database, write }, { dry_run }, { callLog }) => {
    const found = await findUnbooked({ database, callLog })
    const sum = await sumUnbooked(database, found)
    if (dry_run || found.length === 0)
      return { ...sum, dry_run, booked_calls: 0, booked_cost: printCredits(0n) }
    const known = new Set(sum.accounts.flatMap(({ account_id, is_known }) => (is_known ? [account_id] : [])))
    const bookable = found.filter(({ accountId }) => known.has(accountId))
    const ids = await bookLogged(database.bookings, callLog, bookable)
    const booked = bookable.filter(({ requestId }) => ids.has(requestId))
    const booked_cost = printCredits(booked.reduce((all, { cost }) => all + cost, 0n))
    await write(async (writing) => {
      await writing.journals.announceWallets([...new Set(booked.map(({ accountId }) => accountId))])
      await writing.callCopy.recordUnbooked('import', { calls: booked.length, cost: booked_cost })
    })
    return { ...sum, dry_run, booked_calls: booked.length, booked_cost }
  }),
]
