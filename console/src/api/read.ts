/** Reads records and lists from the management API. */
import { type Query, type UseQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { OPERATION_ROUTES, type OperationPath } from '../../../schemas/routes.ts'
import { type AnswerOf, type InputOf, isRefused, isUnreachable, type ReadName, request } from './client.ts'

interface Page {
  readonly data: readonly unknown[]
  readonly next_cursor: string | null
}
type Entry<Name extends ReadName> = AnswerOf<Name> extends { data: readonly (infer One)[] } ? One : never

type Options<Data> = Omit<UseQueryOptions<Data>, 'queryKey' | 'queryFn'>

/** The first part of the keys of the queries that are read again. */
export type Changed = OperationPath | 'session' | 'catalog'

const findPath = (name: ReadName) => OPERATION_ROUTES[name][1]

export const LIVE_MS = 3_000
/** Sums of many rows cost the service more. */
export const SUMS_MS = 15_000

/** What changes without its reader, and how often it is read again while the page is visible. */
const LIVE: { readonly [Name in ReadName]?: number } = {
  listTasks: LIVE_MS,
  listAllTasks: LIVE_MS,
  showTask: LIVE_MS,
  showAnyTask: LIVE_MS,
  listLostSubmits: LIVE_MS,
  listWebhooks: LIVE_MS,
  listDeliveries: LIVE_MS,
  showDelivery: LIVE_MS,
  showHome: SUMS_MS,
  showAccount: LIVE_MS,
  listAccounts: LIVE_MS,
  showAlerts: LIVE_MS,
  listLedger: LIVE_MS,
  showLedgerMonth: SUMS_MS,
  showPayment: LIVE_MS,
  listPayments: LIVE_MS,
  listAllPayments: LIVE_MS,
  listCards: LIVE_MS,
  showAutomaticTopUp: LIVE_MS,
  listBudgets: LIVE_MS,
  listKeyRequests: LIVE_MS,
  listMembers: LIVE_MS,
  listMemberInvitations: LIVE_MS,
  listInvitations: LIVE_MS,
  listKeys: LIVE_MS,
  showKey: LIVE_MS,
  listImports: LIVE_MS,
  listChannels: LIVE_MS,
  showHealth: LIVE_MS,
  listOperatorAlerts: LIVE_MS,
  listJournals: LIVE_MS,
  listJobs: LIVE_MS,
  listRefusedEvents: LIVE_MS,
}

/** Returns how a query stays up to date. A list that was read further is read again as much more rarely. */
function keepLive(name: ReadName) {
  const { [name]: every } = LIVE
  if (every === undefined) return {}
  return {
    staleTime: 0,
    refetchInterval: ({ state: { data, error } }: Query<never, Error, never, never>) => {
      if (error !== null && isRefused(error)) return false as const
      const read = data as { readonly pages?: readonly unknown[] } | readonly unknown[] | undefined
      const pages = Array.isArray(read) ? read.length / PAGE_ENTRIES : (read as { pages?: [] })?.pages?.length
      return every * Math.max(1, pages ?? 1)
    },
  }
}

/** Keeps on the page what was read before the service went down: the frame says so. */
export const keepShown = <Result extends { data: unknown; error: Error | null }>(result: Result): Result =>
  result.data !== undefined && result.error !== null && isUnreachable(result.error)
    ? { ...result, status: 'success', isSuccess: true, isError: false, isRefetchError: false, error: null }
    : result

/** Reads a record. The key of the query is the path, then the input. */
export const useGet = <Name extends ReadName>(
  name: Name,
  input: InputOf<Name>,
  options?: Options<AnswerOf<Name>>,
) =>
  keepShown(
    useQuery({
      ...(keepLive(name) as Options<AnswerOf<Name>>),
      ...options,
      queryKey: [findPath(name), input],
      queryFn: ({ signal }) => request(name, input, { signal }),
    }),
  )

/** The most entries that the service puts in a page. */
const PAGE_ENTRIES = 200

/** Reads a whole list, and yields the entries of each page. */
export async function* readPages<Name extends ReadName>(
  name: Name,
  input: Omit<InputOf<Name>, 'cursor' | 'limit'>,
  signal: AbortSignal,
): AsyncGenerator<Entry<Name>[]> {
  let cursor: string | null = null
  do {
    const asked = { ...input, limit: PAGE_ENTRIES, ...(cursor !== null && { cursor }) }
    const page = (await request(name, asked as InputOf<Name>, { signal })) as Page
    yield page.data as Entry<Name>[]
    cursor = page.next_cursor
  } while (cursor !== null)
}

/** Reads a whole list. The key of the query is the path, then the input. */
export const useWholeList = <Name extends ReadName>(
  name: Name,
  input: Omit<InputOf<Name>, 'cursor' | 'limit'>,
  options?: Options<Entry<Name>[]>,
) =>
  keepShown(
    useQuery({
      refetchOnMount: 'always',
      ...(keepLive(name) as Options<Entry<Name>[]>),
      ...options,
      queryKey: [findPath(name), 'whole', input],
      queryFn: async ({ signal }) => {
        const entries: Entry<Name>[] = []
        for await (const page of readPages(name, input, signal)) entries.push(...page)
        return entries
      },
    }),
  )

/** Reads a list from its beginning; `fetchNextPage` of the result adds to `rows`. */
export function useList<Name extends ReadName>(name: Name, input: Omit<InputOf<Name>, 'cursor'>) {
  const query = useInfiniteQuery({
    ...(keepLive(name) as object),
    queryKey: [findPath(name), input],
    queryFn: ({ pageParam, signal }) => {
      const asked = { ...input, ...(pageParam !== '' && { cursor: pageParam }) }
      return request(name, asked as InputOf<Name>, { signal }) as Promise<Page>
    },
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
    // Others write too: a page that is opened again must be up to date.
    refetchOnMount: 'always',
  })
  const rows = (query.data?.pages.flatMap(({ data }) => data) ?? []) as Entry<Name>[]
  return { ...keepShown(query), rows }
}
