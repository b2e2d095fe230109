/** Starts the console in the browser. */
import './styles.css'
import { CSPProvider } from '@base-ui/react/csp-provider'
import { i18n } from '@lingui/core'
import { I18nProvider } from '@lingui/react'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { ApiError, isSessionEnd, setCsrfToken } from './api/client.ts'
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
      /** The notice that the act was done, where the page does not show it. */
      readonly done?: string
      /** What the act changes: queries whose key begins with one of these paths are read again. */
      readonly changes?: readonly Changed[]
    }
  }
}

showTheme()
await activateLanguage(choosePreferredLanguage())
/** Goes to the sign-in when the session has ended, and from there back to the page. */
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
    // After what the page does on success, such as to close a dialog.
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
      // Without a network the service may still be on this machine; else an error says so at once.
      networkMode: 'always',
      staleTime: 10_000,
      // A refusal stays one.
      retry: (count, error) => count < MAX_RETRIES && !(error instanceof ApiError && error.status < 500),
    },
    mutations: { networkMode: 'always' },
  },
})
const router = makeRouter(queries)
createRoot(document.getElementById('root')!).render(
  <CSPProvider disableStyleElements>
    <I18nProvider i18n={i18n}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  </CSPProvider>,
)
