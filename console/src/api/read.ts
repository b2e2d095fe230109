/** What is read of the management API: a record, or a list, page by page or whole. */
import { queryOptions, type UseQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { AnswerOf, InputOf, Operation } from '../../../schemas/management/operation.ts'
import { get } from './client.ts'

interface Page {
  readonly data: readonly unknown[]
  readonly next_cursor: string | null
}
type Entry<O extends Operation> = AnswerOf<O> extends { data: readonly (infer One)[] } ? One : never

type Options<Data> = Omit<UseQueryOptions<Data>, 'queryKey' | 'queryFn'>

/** Reads a record. Its key is the path, then the input. */
export const useGet = <O extends Operation>(
  path: string,
  input: InputOf<O>,
  options?: Options<AnswerOf<O>>,
) =>
  useQuery({
    ...options,
    queryKey: [path, input],
    queryFn: ({ signal }) => get<O>(path, input, signal),
  })

/** The most entries that the service puts in a page. */
const PAGE_ENTRIES = 200

/** Reads a list from its beginning to its end, and yields the entries of each page. */
export async function* pagesOf<O extends Operation>(
  path: string,
  input: Omit<InputOf<O>, 'cursor' | 'limit'>,
  signal: AbortSignal,
): AsyncGenerator<Entry<O>[]> {
  let cursor: string | null = null
  do {
    const asked = { ...input, limit: PAGE_ENTRIES, ...(cursor !== null && { cursor }) }
    const page = (await get<O>(path, asked as InputOf<O>, signal)) as Page
    yield page.data as Entry<O>[]
    cursor = page.next_cursor
  } while (cursor !== null)
}

/** Reads a whole list. Its key is the path, then the input. */
export const wholeListQuery = <O extends Operation>(
  path: string,
  input: Omit<InputOf<O>, 'cursor' | 'limit'>,
) =>
  queryOptions({
    queryKey: [path, 'whole', input],
    queryFn: async ({ signal }) => {
      const entries: Entry<O>[] = []
      for await (const page of pagesOf<O>(path, input, signal)) entries.push(...page)
      return entries
    },
    refetchOnMount: 'always',
  })

/** Reads a list from its beginning; `fetchNextPage` of the result adds to `rows`. */
export function useList<O extends Operation>(path: string, input: Omit<InputOf<O>, 'cursor'>) {
  const query = useInfiniteQuery({
    queryKey: [path, input],
    queryFn: ({ pageParam, signal }) => {
      const asked = { ...input, ...(pageParam !== '' && { cursor: pageParam }) }
      return get<O>(path, asked as InputOf<O>, signal) as Promise<Page>
    },
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
    // A page that is opened again shows what is there now: others write too.
    refetchOnMount: 'always',
  })
  const rows = (query.data?.pages.flatMap(({ data }) => data) ?? []) as Entry<O>[]
  return { ...query, rows }
}
