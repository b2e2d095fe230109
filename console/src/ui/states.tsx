/** What a page shows besides its tables: headings, panels, figures, facts, empty states and errors. */
import type { ErrorComponentProps } from '@tanstack/react-router'
import { ExternalLink, type LucideIcon } from 'lucide-react'
import { type ReactNode, useEffect, useLayoutEffect, useState } from 'react'
import { ApiError } from '../api/client.ts'
import { t } from '../i18n.ts'
import { Code } from '../ui/text.tsx'
import { Button } from './button.tsx'
import { CopyButton } from './text.tsx'

export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Tollgate`
  }, [title])
}

const SERVER_ERROR = 500

interface PageHeaderProps {
  readonly title: string
  readonly description?: string
  readonly actions?: ReactNode
}

export function PageHeader({ title, description, actions }: PageHeaderProps) {
  useDocumentTitle(title)
  return (
    <header className="mb-5 flex flex-wrap items-start justify-between gap-3">
      <div className="min-w-0">
        <h1 className="break-words font-semibold text-xl">{title}</h1>
        {description && <p className="mt-0.5 max-w-prose break-words text-quiet">{description}</p>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </header>
  )
}

export const Panel = ({ title, children }: { readonly title?: string; readonly children: ReactNode }) => (
  <section className="rounded-lg border border-line bg-surface">
    {title && <h2 className="border-line border-b px-4 py-2.5 font-medium text-base">{title}</h2>}
    {children}
  </section>
)

/** A figure with its name; `note` gives its unit or period. */
export const Stat = ({
  name,
  value,
  note,
}: {
  readonly name: string
  readonly value: ReactNode
  readonly note?: string
}) => (
  <div className="rounded-lg border border-line bg-surface px-4 py-3">
    <dt className="text-quiet text-sm">{name}</dt>
    <dd className="tabular mt-1 font-semibold text-2xl leading-tight">{value}</dd>
    {note && <dd className="mt-0.5 text-quiet text-xs">{note}</dd>}
  </div>
)

const TONES = {
  neutral: 'bg-raised text-quiet',
  accent: 'bg-accent-wash text-accent',
  good: 'bg-good-wash text-good',
  warn: 'bg-warn-wash text-warn',
  bad: 'bg-bad-wash text-bad',
} as const

export const Badge = ({
  tone = 'neutral',
  children,
}: {
  readonly tone?: keyof typeof TONES
  readonly children: ReactNode
}) => (
  <span
    className={`inline-flex items-center rounded-full px-2 py-0.5 font-medium text-xs whitespace-nowrap ${TONES[tone]}`}
  >
    {children}
  </span>
)

/** The tone and the name of each status. */
export type Statuses<Status extends string> = Readonly<
  Record<Status, readonly [tone: keyof typeof TONES, name: string]>
>

interface StatusBadgeProps<Status extends string> {
  readonly statuses: Statuses<Status>
  readonly status: Status
}

export function StatusBadge<Status extends string>({ statuses, status }: StatusBadgeProps<Status>) {
  const [tone, name] = statuses[status]
  return <Badge tone={tone}>{name}</Badge>
}

/** Lists the statuses with their names, for a filter. */
export const listNames = <Status extends string>(statuses: Statuses<Status>) =>
  Object.entries<readonly [tone: string, name: string]>(statuses).map(
    ([status, [, name]]) => [status, name] as const,
  )

export const EnabledBadge = ({ isEnabled }: { readonly isEnabled: boolean }) =>
  isEnabled ? <Badge tone="good">{t('Active')}</Badge> : <Badge tone="bad">{t('Disabled')}</Badge>

export const Skeleton = ({ rows = 4 }: { readonly rows?: number }) => {
  return (
    <div role="status" className="flex flex-col gap-2 p-4">
      <span className="sr-only">{t('Loading')}</span>
      {Array.from({ length: rows }, (_, row) => row).map((row) => (
        <div key={row} className="h-5 animate-pulse rounded bg-raised" />
      ))}
    </div>
  )
}

export interface EmptyStateProps {
  readonly title: string
  readonly icon?: LucideIcon
  /** The button that fills it. */
  readonly action?: ReactNode
  /** The page of the documentation that explains what would be here, such as `knowledge.md`. */
  readonly docs?: string
  readonly children?: ReactNode
}

/** Says that there is nothing, and what to do next. */
export const EmptyState = ({ title, icon: Icon, action, docs, children }: EmptyStateProps) => (
  <div className="flex flex-col items-center gap-3 px-4 py-10 text-center">
    {Icon && (
      <span className="rounded-full bg-raised p-3 text-quiet">
        <Icon aria-hidden size={22} />
      </span>
    )}
    <p className="font-medium">{title}</p>
    {(action || docs) && (
      <div className="flex flex-wrap items-center justify-center gap-x-4 gap-y-2">
        {action}
        {docs && (
          <a
            className="inline-flex items-center gap-1 text-accent text-sm hover:underline"
            href={`/docs/${docs}`}
            target="_blank"
            rel="noreferrer"
          >
            {t('Read the documentation')} <ExternalLink aria-hidden size={14} />
          </a>
        )}
      </div>
    )}
    {children && <div className="w-full max-w-2xl text-left text-quiet">{children}</div>}
  </div>
)

interface ErrorStateProps {
  /** Null shows nothing. */
  readonly error: Error | null | undefined
  onRetry?(): void
}

/** The messages that the page shows, and how often. */
const shownMessages = new Map<string, number>()

/** Returns the role of an error: the same one in several places is announced once. */
function useAlertRole(message: string | undefined): 'alert' | undefined {
  const [isFirst, setFirst] = useState(false)
  useLayoutEffect(() => {
    if (message === undefined) return
    const count = shownMessages.get(message) ?? 0
    shownMessages.set(message, count + 1)
    setFirst(count === 0)
    return () => void shownMessages.set(message, (shownMessages.get(message) ?? 1) - 1)
  }, [message])
  return isFirst ? 'alert' : undefined
}

/** Says what went wrong, and the id with which an operator finds the request. */
export function ErrorState({ error, onRetry }: ErrorStateProps) {
  const role = useAlertRole(error?.message)
  if (!error) return null
  const requestId = error instanceof ApiError ? error.requestId : null
  return (
    <div role={role} className="m-4 rounded-md border border-bad bg-bad-wash p-4">
      <p className="font-medium text-bad">{error.message}</p>
      {requestId && (
        <p className="mt-1 flex flex-wrap items-center gap-1 text-sm">
          {t('Request')} <Code>{requestId}</Code> <CopyButton text={requestId} />
        </p>
      )}
      {onRetry && (
        <Button className="mt-3" onClick={onRetry}>
          {t('Try again')}
        </Button>
      )}
    </div>
  )
}

/** Shown in place of a page that fails: says why, and what to do. */
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

/** Shows in a form what to correct; an error that no input causes is shown in full. */
export function FormError({ error }: Pick<ErrorStateProps, 'error'>) {
  if (!error) return null
  if (error instanceof ApiError && error.status >= SERVER_ERROR) return <ErrorState error={error} />
  return (
    <p role="alert" className="text-bad text-sm">
      {error.message}
    </p>
  )
}

export interface Query {
  readonly isPending: boolean
  readonly error: Error | null
  refetch(): unknown
}

interface QueryStateProps {
  readonly query: Query
  /** The rows of the skeleton. */
  readonly rows?: number
}

/** Shown in place of data: a skeleton while it loads, or the error. */
export const QueryState = ({ query, rows }: QueryStateProps) =>
  query.isPending ? (
    <Skeleton rows={rows} />
  ) : (
    <ErrorState error={query.error} onRetry={() => void query.refetch()} />
  )

export const Fact = ({ name, value }: { readonly name: string; readonly value: ReactNode }) => (
  <div className="grid grid-cols-[7rem_minmax(0,1fr)] gap-3 px-4 sm:grid-cols-[10rem_minmax(0,1fr)] py-1.5">
    <dt className="text-quiet text-sm">{name}</dt>
    <dd className="tabular min-w-0 break-words">{value}</dd>
  </div>
)

export const FactPanel = ({ title, children }: Parameters<typeof Panel>[0]) => (
  <Panel title={title}>
    <dl className="py-1.5">{children}</dl>
  </Panel>
)
