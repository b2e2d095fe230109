/** Changes the search parameters of a page. */
import { useNavigate } from '@tanstack/react-router'

interface ChangeOptions {
  /** Replaces the entry in the browser's history. */
  readonly isReplaced?: boolean
}

/** Returns a function that changes search parameters; an empty text or undefined removes one. */
export function useChangeSearch() {
  const navigate = useNavigate()
  return (
    changes: Record<string, string | true | undefined>,
    { isReplaced = false }: ChangeOptions = {},
  ): void =>
    void navigate({
      to: '.',
      replace: isReplaced,
      search: (all) =>
        Object.fromEntries(
          Object.entries({ ...all, ...changes }).filter(([, value]) => value !== '' && value !== undefined),
        ) as typeof all,
    })
}
