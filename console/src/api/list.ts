/** Lists of the management API, page by page. */
import { useInfiniteQuery } from '@tanstack/react-query'
import type { AnswerOf, InputOf, Operation } from '../../../schemas/management/operation.ts'
import { get } from './client.ts'

interface Page {
  readonly data: readonly unknown[]
  readonly next_cursor: string | null
}
type Entry<O extends Operation> = AnswerOf<O> extends { data: readonly (infer One)[] } ? One : never

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
