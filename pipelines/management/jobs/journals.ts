/** Operations of journals: list them, book one that is found on a disk, close one that can never come back. */
import type { Admission, Settlement } from '../../../schemas/call-log/columns.ts'
import { SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { Failure } from '../../../schemas/failure.ts'
import { abandonJournal, importJournal, listJournals } from '../../../schemas/management/journals.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { FoundJournal } from '../../../src/journal/found.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import { decodeSettlements } from '../../settlement/messages.ts'
import { type Context, implementWith } from '../operation.ts'
import { toWholeList } from '../page.ts'

export interface JournalServices {
  /** Reads the journal of a directory of this machine; null where there is none. */
  find(directory: string): FoundJournal | null
  /** Returns the settlement of a call without an end. */
  interrupt(call: Admission, now: number): Settlement
  /** Counts messages of a subject that no settler has booked; null while JetStream does not answer. */
  countSettlements(subject: string): Promise<number | null>
}

const implement = implementWith<JournalServices>()

/** The most that `bookSettlements` takes at once. */
const BOOK_MAX_SETTLEMENTS = 1_000

/**
 * Refuses while JetStream has settlements of the journal: settlers book them. A call that became interrupted before
 * would not be charged.
 * @throws Failure `conflict`
 */
async function assertNoneInJetStream(journals: JournalServices, id: string): Promise<void> {
  const count = await journals.countSettlements(`${SETTLEMENT_SUBJECT}.${id}`)
  if (count === null)
    throw new Failure(
      'conflict',
      'NATS does not answer, so it cannot be known whether settlements of the journal wait there. Start it and try again.',
    )
  if (count > 0)
    throw new Failure(
      'conflict',
      `JetStream has ${count} messages of the journal ${id} that no settler has booked. Start a settler and try again.`,
    )
}

interface Tally {
  booked: number
  cost: Credits
  known: number
  refused: number
  readonly accounts: Set<string>
}

async function bookInto(
  tally: Tally,
  database: Repositories,
  settlements: readonly Settlement[],
): Promise<void> {
  for (let at = 0; at < settlements.length; at += BOOK_MAX_SETTLEMENTS) {
    const batch = settlements.slice(at, at + BOOK_MAX_SETTLEMENTS)
    const { booked, refused } = await database.bookings.book(batch)
    const fresh = new Set(booked)
    tally.booked += booked.length
    tally.refused += refused.length
    tally.known += batch.length - booked.length - refused.length
    for (const { request_id, account_id, cost } of batch)
      if (fresh.has(request_id)) {
        tally.cost += BigInt(cost)
        tally.accounts.add(account_id)
      }
  }
}

const makeTally = (): Tally => ({ booked: 0, cost: 0n, known: 0, refused: 0, accounts: new Set() })

/** Books what a journal on a disk has: many transactions, and each call once, so that another try goes on. */
async function bookFound(
  { database, now }: Context,
  journals: JournalServices,
  found: FoundJournal,
): Promise<Tally> {
  const tally = makeTally()
  for (const payload of found.readSettlements()) {
    const { settlements, malformed } = decodeSettlements(null, payload)
    for (const { line, reason } of malformed) await database.bookings.keepMalformed(line, reason)
    tally.refused += malformed.length
    await bookInto(tally, database, settlements)
  }
  const interrupted = found.interrupted.map((call) => journals.interrupt(call, now))
  await bookInto(tally, database, interrupted)
  return tally
}

/** Books the calls of a journal that have something reserved as interrupted; returns how many. */
async function closeReserved(
  database: Repositories,
  id: string,
  journals: JournalServices,
  now: number,
): Promise<number> {
  const tally = makeTally()
  const calls = (await database.journals.readReserved(id)) as Admission[]
  const interrupted = calls.map((call) => journals.interrupt(call, now))
  await bookInto(tally, database, interrupted)
  await database.journals.announceWallets([...new Set(calls.map(({ account_id }) => account_id))])
  return tally.booked
}

export const journalOperations = [
  implement(listJournals, async ({ database }) =>
    toWholeList(
      (await database.journals.list()).map((journal) => ({
        ...toApiShape(journal),
        state: journal.isLive ? ('live' as const) : ('silent' as const),
        last_heartbeat: journal.seenAt.toISOString(),
        open_estimate: printCredits(journal.openEstimate),
        unbooked_cost: printCredits(journal.unbookedCost),
      })),
    ),
  ),
  implement(importJournal, async (context, { directory }, journals) => {
    const { database, write } = context
    const found = journals.find(directory)
    if (found === null)
      throw new Failure(
        'invalid_request',
        `directory: ${directory} has no journal that may be imported. Name a folder with a file \`id\`, such as gateway-0 in the folder \`journal\` of a data directory. The management API reads only below the data directory of the gateway and the folders of journals.import_roots.`,
      )
    const { id } = found
    if (found.isOwned)
      throw new Failure('conflict', `The journal ${id} is in use by a process of this machine.`)
    await database.journals.lockSilent(id)
    await assertNoneInJetStream(journals, id)
    const tally = await bookFound(context, journals, found)
    return write(async (writing) => {
      const journal = await writing.journals.lockSilent(id)
      const rest = (await writing.journals.readReserved(id)).length
      const answer = {
        id,
        booked_calls: tally.booked,
        booked_cost: printCredits(tally.cost),
        known_calls: tally.known,
        refused_calls: tally.refused,
        damaged_bytes: found.damagedBytes,
        rest_calls: rest,
      }
      await writing.journals.announceWallets([...tally.accounts])
      await writing.journals.end(journal, { outcome: 'imported', hasRest: rest > 0, facts: answer })
      return answer
    })
  }),
  implement(abandonJournal, async ({ database, write, now }, { id }, journals) => {
    await database.journals.lockSilent(id)
    await assertNoneInJetStream(journals, id)
    return write(async (writing) => {
      const journal = await writing.journals.lockSilent(id)
      const answer = {
        id,
        interrupted_calls: await closeReserved(writing, id, journals, now),
        lost_calls: journal.unbookedCalls,
        lost_cost: printCredits(journal.unbookedCost),
      }
      await writing.journals.end(journal, { outcome: 'abandoned', hasRest: false, facts: answer })
      return answer
    })
  }),
]
