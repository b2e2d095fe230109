/** The frame of the pages before the sign-in, and what they share. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { request, setCsrfToken } from '../../api/client.ts'
import { announceSession, type Session, sessionQuery } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { FormError, useDocumentTitle } from '../../ui/states.tsx'
import { rememberWay } from './remembered.ts'

interface FrameProps {
  readonly title: string
  readonly description?: string
  readonly children: ReactNode
}

export function Frame({ title, description, children }: FrameProps) {
  useDocumentTitle(title)
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-sm flex-col justify-center gap-4 px-4 py-8">
      <header>
        <p className="mb-6 font-semibold text-accent">Tollgate</p>
        <h1 className="font-semibold text-xl">{title}</h1>
        {description && <p className="mt-1 text-quiet">{description}</p>}
      </header>
      {children}
    </main>
  )
}

/** Returns a function that keeps a new session and goes to a page. */
export function useOpened(after = '/') {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return async (session: Session, next = after) => {
    setCsrfToken(session.csrf_token)
    // The cache may have data of another user.
    queries.clear()
    queries.setQueryData(sessionQuery.queryKey, session)
    announceSession()
    await navigate({ to: next, replace: true })
  }
}

interface ProvidersProps {
  readonly providers: readonly { readonly id: string; readonly name: string }[]
  /** The page to go to afterwards; null: a new window goes to the provider, and closes. */
  readonly next: string | null
  readonly invitation?: string
}

/** Buttons that send the browser to a provider. */
export function Providers({ providers, next, invitation }: ProvidersProps) {
  const begin = useMutation({
    mutationFn: async (id: string) => {
      // Opened at once: later, the browser would take it for an advertisement.
      const opened = next === null ? window.open('', '_blank', 'popup,width=480,height=640') : window
      if (opened === null) throw new Error(t('Allow this page to open a window, and try again.'))
      const begun = request('beginOidcSignIn', { id, invitation })
      const { ticket, url } = await begun.catch((error: Error) => {
        if (opened !== window) opened.close()
        throw error
      })
      rememberWay({ ticket, next, isConnecting: false }, opened.sessionStorage)
      opened.location.assign(url)
    },
  })
  if (providers.length === 0) return null
  return (
    <div className="flex flex-col gap-2">
      {providers.map(({ id, name }) => (
        <Button key={id} isBusy={begin.isPending} onClick={() => begin.mutate(id)}>
          {t('Continue with {name}', { name })}
        </Button>
      ))}
      <FormError error={begin.error} />
    </div>
  )
}

export const Or = () => {
  return (
    <p className="flex items-center gap-3 text-quiet text-sm before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
      {t('or')}
    </p>
  )
}
