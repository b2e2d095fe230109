/** `tollgate logs find`: what became of a call or a task. */
import { join } from 'node:path'
import t from 'tap'
import type { Settings } from '../../../schemas/config/settings.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { type Journal, openJournal } from '../../../src/journal/journal.ts'
import { newAccount, openFresh, settlement, sharePostgres } from '../postgres/support.ts'
import { hold, newVideo, settle } from '../postgres/tasks/support.ts'
import { commandsOn, wiringOn } from './support.ts'

const engines = await sharePostgres()

t.test('logs find', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const root = join(engines.dataDir, 'journal')
  const { json, text, refused } = commandsOn(
    wiringOn(database, undefined, { settings: () => ({ dataDir: engines.dataDir }) as Settings }),
  )
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'Laptop' })
  const silent = { info() {}, warn() {}, error() {} }

  const attempt = {
    seq: 1,
    created_at: '2026-03-10T15:00:00.000Z',
    latency_ms: 9,
    error_code: 'upstream_error',
    error_message: 'busy \u001b[31m',
  }

  /** Of the first call. */
  let rowId = ''

  t.test('a booked call: who, what, how it ended, and what became of its money', async (t) => {
    const call = settlement(accountId, {
      key_id: key.id,
      status: 'error',
      error_code: 'upstream_error',
      error_message: 'Too busy.',
      attempts_count: 2,
      attempts: [attempt],
      detail: '{"messages":3}',
    })
    await database.bookings.book([call])
    const found = await json('logs', 'find', call.request_id)
    t.match(found, {
      ref: call.request_id,
      place: 'booked',
      account_id: accountId,
      account_name: 'Test',
      call: {
        object: 'log',
        id: Number,
        request_id: call.request_id,
        account_id: accountId,
        key_id: key.id,
        key_name: 'Laptop',
        key_prefix: key.prefix,
        model: 'sonata-large',
        protocol: 'chat-completions',
        stream: true,
        status: 'error',
        error_code: 'upstream_error',
        error_message: 'Too busy.',
        input_tokens: 1200,
        output_tokens: 340,
        cached_tokens: 100,
        reasoning_tokens: 12,
        cost: '0.049',
        estimate: '0.96',
        usage_source: 'upstream',
        submitted_at: new Date(call.submitted_at).toISOString(),
        created_at: new Date(call.created_at).toISOString(),
        latency_ms: 1250,
        ttfb_ms: 120,
        channel_id: 'primary',
        attempts_count: 2,
        attempts: [attempt],
      },
      detail: {
        request: [
          { k: 'endpoint', v: 'POST /v1/chat/completions' },
          { k: 'protocol', v: 'chat-completions' },
          { k: 'model', v: 'sonata-large' },
          { k: 'stream', v: 'true' },
          { k: 'messages', v: '3' },
        ],
        request_note: /^Failed after 2 attempts \(upstream_error\): Too busy\./,
      },
      call_log: 'waiting',
      ledger: [{ kind: 'charge', amount: '-0.049', ref: call.request_id, account_id: accountId }],
      hold: null,
      refused: null,
      journal: null,
    })
    const { ref: _, ...rest } = found
    rowId = String(found.call.id)
    t.match(await json('logs', 'find', rowId), { ref: rowId, ...rest }, 'by the id of its row')

    const shown = await text('logs', 'find', call.request_id)
    for (const part of [
      /^ref +req_\w+\nplace +booked\naccount_id +acc_\w+\naccount_name +Test\ncall_log +waiting\n\ncall\n/,
      /\n {2}key_id +key_\w+\n {2}key_name +Laptop\n {2}key_prefix +sk-tollgate-/,
      /\n {2}status +error\n {2}error_code +upstream_error\n {2}error_message +Too busy\.\n/,
      /\n {2}input_tokens +1200\n/,
      /\n {2}cost +0\.049\n/,
      /\n {2}channel_id +primary\n/,
      /\n {2}booked_at +2/,
      /\n {2}attempts\n {4}seq .*\n {4}1 .* busy \?\[31m\n/,
      /\n\nledger\n {2}id .*\n {2}\d+ .* charge +-0\.049 /,
      /\n {2}request\n {4}endpoint +POST .*\n(.*\n)+ {4}messages +3\n\n {2}upstream\n/,
      /\n\ndetail\n {2}request_note +Failed after 2 attempts/,
    ])
      t.match(shown, part)
  })

  t.test('on its way to the call log, and there', async (t) => {
    const range = await database.callCopy.claimRange()
    t.match(await json('logs', 'find', rowId), { call_log: 'copying' })
    const later = settlement(accountId)
    await database.bookings.book([later])
    t.match(await json('logs', 'find', later.request_id), { call_log: 'waiting' })
    await database.callCopy.finishRange(range!)
    t.match(await json('logs', 'find', rowId), { call_log: 'copied' })
  })

  t.test('a call that the books refused', async (t) => {
    const call = settlement('acc_nobody')
    await database.bookings.book([call])
    t.match(await json('logs', 'find', call.request_id), {
      place: 'refused',
      call: null,
      refused: { reason: 'unknown account acc_nobody', settlement: { request_id: call.request_id } },
    })
    t.match(
      await text('logs', 'find', call.request_id),
      /\nplace +ended, and refused by the books\n[\s\S]*\nrefused\n {2}reason +unknown account acc_nobody\n/,
    )
  })

  t.test('a task by its hold', async (t) => {
    const ref = newId('vid')
    const task = await hold(database, accountId, 50_000_000n, ref)
    t.match(await json('logs', 'find', ref), {
      place: 'task',
      account_id: accountId,
      hold: { amount: '0.5', state: 'open', charged: '0', closed_at: null },
      ledger: [{ kind: 'hold', amount: '-0.5' }],
    })
    await settle(database, task, 20_000_000n)
    const { hold: closed, ledger } = await json('logs', 'find', ref)
    t.match(closed, { state: 'settled', charged: '0.2' })
    t.same(ledger.map(({ kind }: { kind: string }) => kind).sort(), ['charge', 'hold', 'release'])
    t.match(
      await text('logs', 'find', ref),
      /\nhold\n {2}ref .*\n.*\n {2}amount +0\.5\n {2}state +settled\n {2}charged +0\.2\n/,
    )
  })

  t.test('an open task by its id and by its request: state, hold, key and account', async (t) => {
    const video = newVideo(accountId, { keyId: key.id, hold: 50_000_000n })
    t.match(await database.tasks.create(video), { outcome: 'created' })
    for (const ref of [video.id, video.requestId]) {
      t.match(await json('logs', 'find', ref), {
        ref,
        place: 'task',
        account_id: accountId,
        account_name: 'Test',
        call: null,
        hold: { ref: video.id, amount: '0.5', state: 'open' },
        task: {
          id: video.id,
          kind: 'video',
          state: 'waiting',
          account_id: accountId,
          key_id: key.id,
          key_name: 'Laptop',
          request_id: video.requestId,
          model: 'motion-large',
          hold: '0.5',
          cost: null,
          ended_at: null,
        },
      })
      const shown = await text('logs', 'find', ref)
      t.match(shown, /\naccount_id +acc_\w+\naccount_name +Test\n/)
      t.match(shown, new RegExp(`\ntask\n {2}id +${video.id}\n {2}kind +video\n {2}state +waiting\n`))
      t.match(shown, /\n {2}key_name +Laptop\n/)
      t.match(shown, /\nhold\n {2}ref .*\n.*\n {2}amount +0\.5\n {2}state +open\n/)
    }
  })

  t.test('a charge that has lost its row', async (t) => {
    const call = settlement(accountId)
    await database.bookings.book([call])
    await sql`ALTER TABLE usage_rows DISABLE TRIGGER usage_rows_stay`
    await sql`DELETE FROM usage_rows WHERE request_id = ${call.request_id}`
    await sql`ALTER TABLE usage_rows ENABLE TRIGGER usage_rows_stay`
    t.match(await json('logs', 'find', call.request_id), { place: 'ledger_only', account_id: accountId })
  })

  t.test('a call that goes on, and one that ended and is not booked yet', async (t) => {
    const journal = await openJournal({ directory: join(root, 'gateway-0'), log: silent })
    t.teardown(() => journal.close())
    const call = settlement(accountId, { key_id: key.id })
    const ticket = await admit(journal, call)
    const inFlight = await json('logs', 'find', call.request_id)
    t.match(inFlight, {
      place: 'in_flight',
      account_id: accountId,
      call: null,
      journal: {
        is_live: true,
        admission: { request_id: call.request_id, model: 'sonata-large', estimate: '0.96' },
        settlement: null,
      },
    })
    t.match(
      await text('logs', 'find', call.request_id),
      /\nplace +still under way\n[\s\S]*\n {2}admission\n[\s\S]* {4}model +sonata/,
    )

    journal.settle(ticket, call)
    await new Promise(setImmediate)
    t.match(await json('logs', 'find', call.request_id), {
      place: 'in_journal',
      journal: { settlement: { status: 'success', cost: '4900000' } },
    })
    await database.bookings.book([call])
    t.match(await json('logs', 'find', call.request_id), { place: 'booked', journal: null })
  })

  t.test('a call whose gateway died', async (t) => {
    const directory = join(root, 'gateway-1')
    const journal = await openJournal({ directory, log: silent })
    const call = settlement(accountId)
    await admit(journal, call)
    await journal.close()
    t.match(await json('logs', 'find', call.request_id), { place: 'cut_off', journal: { is_live: false } })
  })

  t.test('nothing found', async (t) => {
    for (const ref of ['req_nowhere', '999999', '0', '99999999999999999999', "x' OR 1=1"])
      t.match(await refused('logs', 'find', ref), `error: There is no call or task ${ref}: neither booked`)
  })

  function admit(journal: Journal, call: ReturnType<typeof settlement>) {
    return new Promise<ReturnType<Journal['admit']>>((resolve, reject) => {
      const ticket = journal.admit(call, (error) => (error === null ? resolve(ticket) : reject(error)))
    })
  }
})
