/** What tests of the media endpoints share: the demonstration's models and prices, and the books of a task. */
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { sniffMediaType } from '../../../src/core/media/type.ts'
import { verifyWallets } from '../../support/connections.ts'
import { eventually, type LentService, type LogJson, until } from '../../support/service.ts'
import { balanceOf } from '../support.ts'

const DEMONSTRATION = new URL('../../../src/config/demonstration.yaml', import.meta.url)

/** Those between which a model has a choice: a service is lent to nobody whose choice another test may have narrowed. */
const CHOSEN_CHANNEL = /- id: (?:simulated-chat|simulated-responses|example)$/gm

/** The demonstration as it is shipped, in front of the test's simulated provider; some channels have this process's names. */
export const demonstration = (change: (yaml: string) => string = (yaml) => yaml): string =>
  change(
    readFileSync(DEMONSTRATION, 'utf8')
      .replaceAll('TOLLGATE_SIMULATOR_URL', 'TEST_SIMULATOR_URL')
      .replaceAll(CHOSEN_CHANNEL, (line) => `${line}-${process.pid}`),
  )

/** The demonstration with more entries of its lists. */
export const demonstrationWith = (models: string, channels: string): string =>
  demonstration((yaml) =>
    yaml.replace(/^models:$/m, (line) => line + models).replace(/^channels:$/m, (line) => line + channels),
  )

/** What a request was answered. */
export interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
  readonly trace: string
}

/** Status and code of a refusal. */
export const codeOf = ({ status, body }: Answer) => ({
  status,
  code: (body.error as { code: string } | undefined)?.code,
})
export const messageOf = ({ body }: Answer) => (body.error as { message: string }).message

export const INVALID = { status: 400, code: 'invalid_request' }
export const NO_MODEL = { status: 400, code: 'model_not_found' }
export const NO_CREDIT = { status: 402, code: 'quota_exceeded' }
export const NOT_ALLOWED = { status: 403, code: 'model_not_allowed' }
export const ABSENT = { status: 404, code: 'not_found' }
export const KEY_REUSED = { status: 409, code: 'idempotency_key_reuse' }
export const NOT_CANCELLABLE = { status: 409, code: 'task_not_cancellable' }
export const NO_CHANNEL = { status: 503, code: 'no_channel_available' }

export const ULID = '[0-9A-HJKMNP-TV-Z]{26}'
export const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** A link that tells the simulated provider how to behave. */
export const linkTo = (name: string, directives: string) =>
  `https://example.com/${name}?simulate=${encodeURIComponent(directives)}`

/** Returns the type of what a link opens; null where it opens nothing. */
export async function typeBehind(url: string): Promise<string | null> {
  const response = await fetch(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  return response.status === 200 ? sniffMediaType(bytes) : null
}

export interface MediaClient {
  readonly accountId: string
  readonly key: string
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string): Promise<Answer>
  /** The answer to polls once `status` is none of the open ones. */
  ended(path: string): Promise<Record<string, unknown>>
}

const OPEN: readonly unknown[] = ['queued', 'running', 'processing', 'pending']

export async function newClient(
  service: LentService,
  credit: string,
  more: Parameters<LentService['newKey']>[1] = {},
): Promise<MediaClient> {
  return clientOf(service, await service.newKey(credit, more))
}

/** Refused submits by key: the code of each answer, by its request id. */
const REFUSED = new Map<string, Map<string, string>>()
/** Of requests that belong to no call. */
const WITHOUT_ROW = ['not_found', 'method_not_allowed', 'invalid_api_key']

function noteRefusal(key: string, { status, body, trace }: Answer): void {
  const code = (body.error as { code?: string } | undefined)?.code
  if (status < 400 || code === undefined || WITHOUT_ROW.includes(code)) return
  REFUSED.set(key, (REFUSED.get(key) ?? new Map()).set(trace, code))
}

/** Every refusal of a submit has left a row, under the code of its answer. */
async function checkRefusals(t: Test, service: LentService, key: string): Promise<void> {
  const refused = REFUSED.get(key) ?? new Map<string, string>()
  const codes = (rows: readonly LogJson[]) =>
    new Map(rows.map(({ request_id, error_code }) => [request_id, error_code]))
  const found = codes(
    await service.logs(key, (rows) => [...refused.keys()].every((trace) => codes(rows).has(trace))),
  )
  for (const [trace, code] of refused) t.equal(found.get(trace), code, `the row of ${trace}`)
}

export function clientOf(
  service: LentService,
  { accountId, key }: { readonly accountId: string; readonly key: string },
): MediaClient {
  const ask: MediaClient['ask'] = async (method, path, body, headers = {}) => {
    const response = await fetch(service.baseUrl + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    })
    const trace = response.headers.get('x-gateway-trace')
    if (trace === null) throw new Error(`${method} ${path} is answered without x-gateway-trace`)
    const text = await response.text()
    const answer = { status: response.status, body: JSON.parse(text), headers: response.headers, trace }
    if (method === 'POST') noteRefusal(key, answer)
    return answer
  }
  const get: MediaClient['get'] = (path) => ask('GET', path)
  return {
    accountId,
    key,
    ask,
    get,
    post: (path, body, headers) => ask('POST', path, body, headers),
    async ended(path) {
      return eventually(`${path} has ended`, async () => {
        const { status, body } = await get(path)
        if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`)
        return OPEN.includes(body.status) ? undefined : body
      })
    },
  }
}

/** Ends the job of a task at the simulated provider, where it would go on for minutes. */
export async function finishUpstream({ engines, database }: LentService, taskId: string): Promise<void> {
  const upstreamId = await eventually('its provider has it', async () => {
    const [task] = await database.tasks.read([taskId])
    return task?.upstreamId ?? undefined
  })
  await fetch(`${engines.simulatorUrl}/simulator/tasks/${upstreamId}/end`, { method: 'POST' })
}

/** Kind and amount of the ledger entries that name this task, the oldest first. */
export async function entriesOf(
  service: LentService,
  accountId: string,
  taskId: string,
): Promise<{ kind: string; amount: string }[]> {
  const entries = await service.database.wallets.readLedger(accountId, { before: null, limit: 1000 })
  return entries
    .filter(({ ref }) => ref === taskId)
    .map(({ kind, amount }) => ({ kind, amount: printCredits(amount) }))
    .reverse()
}

const sum = (amounts: readonly string[]): Credits =>
  amounts.reduce((total, amount) => total + parseCredits(amount), 0n)

/** The entries of a task: what it held, what it gave back and what it was charged; their sum is minus the charge. */
export async function checkEntries(
  t: Test,
  service: LentService,
  { accountId }: Pick<MediaClient, 'accountId'>,
  taskId: string,
  { held, charged }: { readonly held: string; readonly charged: string | null },
): Promise<void> {
  const entries = await entriesOf(service, accountId, taskId)
  const amountOf = (kind: string) => entries.find((entry) => entry.kind === kind)?.amount
  if (sum([held]) > 0n) t.equal(amountOf('hold'), `-${held}`, `${taskId} held ${held}`)
  const expected = printCredits(-sum([charged ?? '0']))
  t.equal(printCredits(sum(entries.map(({ amount }) => amount))), expected, `${taskId} cost ${charged}`)
  if (charged === null && sum([held]) > 0n) t.equal(amountOf('refund'), held, `${taskId} was refunded`)
}

/**
 * Once nothing is held any more, the wallet is what was paid in less what was charged; the audit finds nothing; and
 * the call log has every refusal of a submit as it was answered.
 */
export async function checkWallet(
  t: Test,
  service: LentService,
  { key }: Pick<MediaClient, 'key'>,
  paidIn: string,
  charges: readonly string[],
): Promise<void> {
  const used = sum(charges)
  const expected = { remaining: printCredits(sum([paidIn]) - used), used: printCredits(used), held: '0' }
  await until('the wallet is settled', async () => (await balanceOf(service, key)).held === '0')
  await until(
    'the balance is shown',
    async () => (await balanceOf(service, key)).remaining === expected.remaining,
  ).catch(() => {})
  t.match(await balanceOf(service, key), expected, 'remaining, used and held')
  t.same((await verifyWallets(service)).differences, [], 'the audit finds no difference')
  await checkRefusals(t, service, key)
}
