/** The call log for its users: `GET` requests to the gateway, with a key of the account. */
import type { CsvAnswer, LogEngine, PageQuery } from './engine.ts'
import type { RunningService } from './service.ts'

/** Less than the rate limit of a key per minute. */
const REQUESTS_A_KEY = 50

interface LogPageJson {
  readonly data: readonly { readonly id: number }[]
  readonly next_cursor: string | null
}
interface LogSummaryJson {
  readonly by_day: readonly unknown[]
}

const instant = (epochMs: number): string => new Date(epochMs).toISOString()

const toParameters = (query: PageQuery): URLSearchParams => {
  const parameters = new URLSearchParams({ scope: 'account', limit: String(query.limit) })
  const { cursor, order, keyIds, models, statuses, unitTypes, errorCodes, ref, from, to } = query
  const add = (name: string, value: string | null | undefined) => {
    if (value != null) parameters.set(name, value)
  }
  add('cursor', cursor)
  add('order', order)
  add('key_id', keyIds?.[0])
  add('model', models?.join(','))
  add('status', statuses?.join(','))
  add('unit_type', unitTypes?.join(','))
  add('error_code', errorCodes?.join(','))
  add('ref', ref)
  if (cursor === null) {
    add('from', instant(from))
    add('to', instant(to))
  }
  return parameters
}

/** Reads the chunks of a response; the first chunk has the first rows. */
const readCsv = async (answer: Response, startedAt: number): Promise<CsvAnswer> => {
  let firstMs = 0
  let lines = 0
  for await (const piece of answer.body!) {
    if (firstMs === 0) firstMs = performance.now() - startedAt
    for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines += 1
  }
  return { rows: lines - 1, firstMs }
}

/** Keys of one account, each used less often than its rate limit. */
class KeyRing {
  readonly #keys: readonly string[]
  #asked = 0

  constructor(keys: readonly string[]) {
    this.#keys = keys
  }

  next(): string {
    const key = this.#keys[Math.floor(this.#asked++ / REQUESTS_A_KEY)]
    if (key === undefined) throw new RangeError(`no key left after ${this.#asked - 1} requests`)
    return key
  }
}

/** Creates keys for this many requests and uses each once, so that their lookup does not count as the log's time. */
const makeKeys = async ({ baseUrl, makeKey }: RunningService, accountId: string, requests: number) => {
  const keys: string[] = []
  for (let allowed = 0; allowed < requests; allowed += REQUESTS_A_KEY) {
    const key = await makeKey(accountId)
    await get(baseUrl, key, '/v1/key/balance').then((answer) => answer.arrayBuffer())
    keys.push(key)
  }
  return new KeyRing(keys)
}

const get = async (baseUrl: string, key: string, path: string): Promise<Response> => {
  const answer = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${key}` } })
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`)
  return answer
}

/** `requests` is the most that one account is queried. */
export const httpEngine = async (
  service: RunningService,
  accountId: string,
  requests: number,
): Promise<LogEngine> => {
  const keys = await makeKeys(service, accountId, requests)
  const json = async <T>(path: string): Promise<T> => {
    const answer = await get(service.baseUrl, keys.next(), path)
    return (await answer.json()) as T
  }
  return {
    name: 'http',
    nothing: async () => {
      await (await fetch(`${service.baseUrl}/healthz`)).text()
    },
    page: async (query) => {
      const { data, next_cursor } = await json<LogPageJson>(`/v1/logs?${toParameters(query)}`)
      return { ids: data.map(({ id }) => id), next: next_cursor }
    },
    detail: async ({ id }) => {
      await json(`/v1/logs/${id}?scope=account`)
      return 1
    },
    summary: async ({ from, to }) => {
      const window = new URLSearchParams({ scope: 'account', from: instant(from), to: instant(to) })
      return (await json<LogSummaryJson>(`/v1/logs/summary?${window}`)).by_day.length
    },
    csv: async (query) => {
      const startedAt = performance.now()
      const path = `/v1/logs?format=csv&${toParameters(query)}`
      return readCsv(await get(service.baseUrl, keys.next(), path), startedAt)
    },
  }
}
