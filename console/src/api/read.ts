/** Reads records and lists from the management API. */
import { queryOptions, type UseQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { OPERATION_ROUTES, type OperationPath } from '../../../schemas/routes.ts'
import { type AnswerOf, type InputOf, type ReadName, request } from './client.ts'

interface Page {
  readonly data: readonly unknown[]
  readonly next_cursor: string | null
}
type Entry<Name extends ReadName> = AnswerOf<Name> extends { data: readonly (infer One)[] } ? One : never

type Options<Data> = Omit<UseQueryOptions<Data>, 'queryKey' | 'queryFn'>

/** The first part of the keys of the queries that are read again. */
export type Changed = OperationPath | 'session' | 'catalog'

const findPath = (name: ReadName) => OPERATION_ROUTES[name][1]

/** Reads a record. The key of the query is the path, then the input. */
export const useGet = <Name extends ReadName>(
  name: Name,
  input: InputOf<Name>,
  options?: Options<AnswerOf<Name>>,
) =>
  useQuery({
    ...options,
    queryKey: [findPath(name), input],
    queryFn: ({ signal }) => request(name, input, { signal }),
  })

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
export const wholeListQuery = <Name extends ReadName>(
  name: Name,
  input: Omit<InputOf<Name>, 'cursor' | 'limit'>,
) =>
  queryOptions({
    queryKey: [findPath(name), 'whole', input],
    queryFn: async ({ signal }) => {
      const entries: Entry<Name>[] = []
      for await (const page of readPages(name, input, signal)) entries.push(...page)
      return entries
    },
    refetchOnMount: 'always',
  })

/** Reads a list from its beginning; `fetchNextPage` of the result adds to `rows`. */
export function useList<Name extends ReadName>(name: Name, input: Omit<InputOf<Name>, 'cursor'>) {
  const query = useInfiniteQuery({
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
  return { ...query, rows }
}
