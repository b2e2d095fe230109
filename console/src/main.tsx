/** Starts the console in the browser. */
import './styles.css'
import { CSPProvider } from '@base-ui/react/csp-provider'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { isRefused, isSessionEnd, setCsrfToken } from './api/client.ts'
import type { Changed } from './api/read.ts'
import { activateLanguage, choosePreferredLanguage } from './i18n.ts'
import { makeRouter } from './router.tsx'
import { showTheme } from './theme.ts'
import { notify } from './ui/toasts.tsx'

const MAX_RETRIES = 2
const SIGN_IN = '/sign-in'

declare module '@tanstack/react-query' {
  interface Register {
    mutationMeta: {
      /** A notice of success, if the page itself does not show it. */
      readonly done?: string
      /** Queries whose key begins with one of these paths are read again. */
      readonly changes?: readonly Changed[]
    }
  }
}

showTheme()
await activateLanguage(choosePreferredLanguage())
/** If the session has ended, goes to the sign-in, which comes back to this page. */
const onError = (error: Error) => {
  const { href, pathname } = router.state.location
  if (!isSessionEnd(error) || pathname.endsWith(SIGN_IN)) return
  setCsrfToken(null)
  void router.navigate({ to: SIGN_IN, search: { next: href }, replace: true }).then(() => queries.clear())
}
const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({
    onError,
    onSuccess: (_answer, _input, _context, { meta }) => {
      if (meta?.done !== undefined) notify(meta.done)
    },
    // Runs after the page's own work on success, such as closing a dialog.
    onSettled: async (_answer, error, _input, _context, { meta }) => {
      const { changes } = meta ?? {}
      if (error || changes === undefined) return
      await queries.invalidateQueries({
        predicate: ({ queryKey: [path] }) => changes.some((changed) => String(path).startsWith(changed)),
      })
    },
  }),
  defaultOptions: {
    queries: {
      // Without a network, the service may still run on this machine.
      networkMode: 'always',
      // What was read just before may have changed since, in another tab or while the service was down.
      refetchOnReconnect: 'always',
      refetchOnWindowFocus: 'always',
      staleTime: 10_000,
      // A refused request would be refused again.
      retry: (count, error) => count < MAX_RETRIES && !isRefused(error),
    },
    mutations: { networkMode: 'always' },
  },
})
const router = makeRouter(queries)
createRoot(document.getElementById('root')!).render(
  <CSPProvider disableStyleElements>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </CSPProvider>,
)
