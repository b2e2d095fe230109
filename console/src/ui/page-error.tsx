/** Shown in place of a page that fails: why, and what to do. */
import type { ErrorComponentProps } from '@tanstack/react-router'
import { t } from '../i18n.ts'
import { ErrorState } from './states.tsx'

export function PageError({ error, reset }: ErrorComponentProps) {
  return (
    <main>
      <ErrorState error={error as Error} onRetry={reset} />
      {/* Reloads the console: the address of the page may be what is wrong. */}
      <a href="/console/" className="mx-4 text-accent underline">
        {t('To the start page')}
      </a>
    </main>
  )
}
