/** The frame of every page: navigation, account, and the reader's settings. */
import { onlineManager, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useMatches, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { AccountSwitcher } from '../account-switcher.tsx'
import { isSessionEnd, request, setCsrfToken } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { announceSession, sessionQuery, useAccount, useSession } from '../api/session.ts'
import { endView, readViewedAccount } from '../api/viewing.ts'
import { forgetOtherUsers, forgetUser } from '../drafts.ts'
import { readTimeZone, storeTimeZone } from '../format.ts'
import { chooseLanguage, LANGUAGES, type Language, t, useLanguage } from '../i18n.ts'
import { NAVIGATION } from '../navigation.ts'
import { SessionQuestions } from '../session-questions.tsx'
import { applyTheme, THEMES, type Theme, theme } from '../theme.ts'
import { whenIdle } from '../when-idle.ts'
import { Button } from './button.tsx'
import { SelectField } from './form.tsx'
import { useShortcuts } from './shortcuts.ts'
import { EmptyState, FormError } from './states.tsx'
import { Toasts } from './toasts.tsx'

const Menu = lazy(async () => ({ default: (await import('./menu.tsx')).Menu }))
const loadPalette = () => import('./palette.tsx')
const Palette = lazy(async () => ({ default: (await loadPalette()).Palette }))
const ShortcutList = lazy(async () => ({ default: (await import('./shortcut-list.tsx')).ShortcutList }))
/** The id of the palette's input. */
const PALETTE_INPUT = 'palette-input'
/** How often a page that has lost the service looks for it. */
const LOST_RETRY_MS = 3_000
const COMMAND = /mac|iphone|ipad/i.test(navigator.platform) ? '⌘' : 'Ctrl'

function Settings() {
  const language = useLanguage()
  const [, redraw] = useState(0)
  const redrawAgain = () => redraw((count) => count + 1)
  return (
    <div className="flex flex-col gap-2">
      <SelectField
        label={t('Theme')}
        value={theme()}
        onText={(text) => {
          applyTheme(text as Theme)
          redrawAgain()
        }}
        options={THEMES.map(
          (one) => [one, { system: t('System'), light: t('Light'), dark: t('Dark') }[one]] as const,
        )}
      />
      <SelectField
        label={t('Time zone')}
        value={readTimeZone()}
        onText={(text) => {
          storeTimeZone(text as 'local' | 'utc')
          location.reload()
        }}
        options={[
          ['local', t('Local')],
          ['utc', 'UTC'],
        ]}
      />
      <SelectField
        label={t('Language')}
        value={language}
        onText={(text) => void chooseLanguage(text as Language)}
        options={Object.entries(LANGUAGES)}
      />
    </div>
  )
}

/** Returns whether the user's role includes the page. Pages that the navigation does not name are for everyone. */
function useMaySee(): boolean {
  const session = useSession()
  const account = useAccount()
  const path = useMatches({ select: (matches) => matches.at(-1)?.fullPath })
  const page = NAVIGATION.flatMap(({ pages }) => pages).find((one) => one.path === path)
  return page === undefined || page.isFor(session, account)
}

/** The number of requests for keys that wait for a decision. */
function PendingRequests() {
  const { account_id, role } = useAccount()
  const isDecider = role === 'owner' || role === 'admin'
  const { data } = useGet('listKeyRequests', { account_id, state: 'pending' }, { enabled: isDecider })
  if (!data || data.data.length === 0) return null
  return (
    <span className="ml-auto rounded-full bg-accent px-1.5 font-medium text-on-accent text-xs">
      <span aria-hidden="true">
        {data.data.length}
        {data.has_more && '+'}
      </span>
      <span className="sr-only">
        {t('{count, plural, one {# request for a key} other {# requests for keys}}', {
          count: data.data.length,
        })}
      </span>
    </span>
  )
}

const Brand = () => (
  <span className="flex items-center gap-2.5 font-semibold text-lg tracking-tight">
    <span aria-hidden="true" className="gate h-4 w-2.5 rounded-sm" />
    Tollgate
  </span>
)

function SignOut() {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const leave = useMutation({
    mutationFn: async () => {
      await request('signOut', {}, { isSilent: true }).catch((error: Error) => {
        // It had ended already.
        if (!isSessionEnd(error)) throw error
      })
      forgetUser()
      setCsrfToken(null)
      queries.clear()
      await navigate({ to: '/sign-in' })
      // After this tab has stopped listening.
      announceSession()
    },
  })
  return (
    <>
      <Button
        kind="quiet"
        className="justify-start px-2"
        isBusy={leave.isPending}
        onClick={() => leave.mutate()}
      >
        {t('Sign out')}
      </Button>
      <FormError error={leave.error} />
    </>
  )
}

interface NavigationProps {
  onSearch(): void
  onShortcuts(): void
  onChosen?(): void
}

function Navigation({ onSearch, onShortcuts, onChosen }: NavigationProps) {
  const session = useSession()
  const account = useAccount()
  return (
    <div className="flex h-full flex-col gap-4 overflow-y-auto p-3">
      <p className="px-2 pt-1">
        <Brand />
      </p>
      <AccountSwitcher />
      <Button
        className="justify-between! text-quiet"
        onClick={() => {
          onChosen?.()
          onSearch()
        }}
      >
        {t('Search')}
        <kbd className="font-sans text-xs">{COMMAND} K</kbd>
      </Button>
      <nav aria-label={t('Pages')} className="flex flex-col gap-4">
        {NAVIGATION.map(({ title, pages }) => {
          const seen = pages.filter(({ isFor }) => isFor(session, account))
          if (seen.length === 0) return null
          return (
            <div key={title}>
              <p className="px-2 pb-1 text-quiet text-xs">{t(title)}</p>
              <ul>
                {seen.map(({ path, name, icon: Icon }) => (
                  <li key={path}>
                    <Link
                      to={path}
                      search={{ account: account.account_id }}
                      activeOptions={{ exact: path === '/', includeSearch: false }}
                      className="relative flex items-center gap-2.5 rounded-md px-2 py-1.5 text-quiet transition-colors hover:bg-raised hover:text-ink aria-[current=page]:bg-accent-wash aria-[current=page]:font-medium aria-[current=page]:text-accent"
                      onClick={onChosen}
                    >
                      <span
                        aria-hidden="true"
                        className="gate absolute inset-y-1 -left-2 w-1.5 rounded-sm opacity-0"
                      />
                      <Icon aria-hidden size={16} strokeWidth={1.75} />
                      {t(name)}
                      {path === '/members' && <PendingRequests />}
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          )
        })}
      </nav>
      <div className="mt-auto flex flex-col gap-3 border-line border-t pt-3">
        <details>
          <summary className="rounded-md px-2 py-1 text-quiet text-sm hover:bg-raised">
            {t('Settings')}
          </summary>
          <div className="flex flex-col gap-2 px-2 pt-2">
            <Settings />
            <Button
              kind="quiet"
              aria-keyshortcuts="?"
              onClick={() => {
                onChosen?.()
                onShortcuts()
              }}
            >
              {t('Keyboard shortcuts')} <kbd className="font-sans text-xs">?</kbd>
            </Button>
          </div>
        </details>
        <p className="truncate px-2 text-quiet text-sm" title={session.user.email}>
          {session.user.name}
        </p>
        <SignOut />
      </div>
    </div>
  )
}

/** Opens the palette with its shortcut, wherever the focus is. What is typed before its input has the focus is kept. */
function usePalette() {
  const [typed, setTyped] = useState<string | null>(null)
  const isOpen = typed !== null
  const isFocused = useRef(false)
  // Loaded before it is needed, so that it opens at once, but after the page.
  useEffect(() => whenIdle(() => void loadPalette().catch(() => undefined)), [])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, altKey } = event
      const isCommand = event.ctrlKey || event.metaKey
      if (key.toLowerCase() === 'k' && isCommand && !altKey) {
        event.preventDefault()
        setTyped((now) => now ?? '')
        return
      }
      if (!isOpen || document.activeElement?.id === PALETTE_INPUT) isFocused.current = isOpen
      else if (!isFocused.current && key.length === 1 && !isCommand) {
        event.preventDefault()
        setTyped((now) => (now ?? '') + key)
      }
    }
    addEventListener('keydown', onKey, true)
    return () => removeEventListener('keydown', onKey, true)
  }, [isOpen])
  return { typed, setTyped, open: () => setTyped(''), close: () => setTyped(null) }
}

/** Says on every page that the user views an account. */
function ViewNotice() {
  const viewed = readViewedAccount()
  const { name } = useAccount()
  if (viewed === null) return null
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center justify-between gap-3 rounded-lg border border-warn bg-warn-wash px-4 py-2"
    >
      <p>
        {t('You see {name} as its owner does, and cannot change anything. The view is in the audit record.', {
          name,
        })}
      </p>
      <Button onClick={() => endView(viewed)}>{t('End the view')}</Button>
    </div>
  )
}

const subscribeOnline = onlineManager.subscribe.bind(onlineManager)

/** Says that the service is down, and asks until it answers; then everything on the page is read again. */
function LostNotice() {
  const isOnline = useSyncExternalStore(subscribeOnline, () => onlineManager.isOnline())
  useQuery({ ...sessionQuery, refetchInterval: isOnline ? false : LOST_RETRY_MS })
  if (isOnline) return null
  return (
    <p
      role="status"
      className="fixed bottom-4 left-1/2 z-20 -translate-x-1/2 rounded-lg border border-warn bg-warn-wash px-4 py-2 font-medium text-warn shadow-lg"
    >
      {t('Connection lost, trying again')}
    </p>
  )
}

export function Shell() {
  const { id: userId } = useSession().user
  const [begun] = useState(userId)
  // In another tab the user has signed out, and someone else has signed in, who may have no access to what is on the page.
  const isLeft = userId !== begun
  useEffect(() => {
    if (isLeft) location.assign('/console/')
  }, [isLeft])
  forgetOtherUsers(userId)
  return isLeft ? null : <Frame />
}

function Frame() {
  useLanguage()
  const [isOpen, setOpen] = useState(false)
  // Choosing another account resets the page: an amount typed for one must not be saved for another.
  const { account_id } = useAccount()
  const isAllowed = useMaySee()
  const palette = usePalette()
  const [hasShortcuts, setShortcuts] = useState(false)
  const showShortcuts = () => setShortcuts(true)
  useShortcuts({ '?': showShortcuts })
  return (
    <div className="flex min-h-dvh flex-col md:flex-row">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:z-10 focus:bg-surface focus:p-2"
      >
        {t('Skip to content')}
      </a>
      <aside className="sticky top-0 hidden h-dvh w-56 shrink-0 border-line border-r bg-surface md:block">
        <Navigation onSearch={palette.open} onShortcuts={showShortcuts} />
      </aside>
      <header className="flex items-center justify-between border-line border-b bg-surface px-4 py-2 md:hidden">
        <Brand />
        <Button aria-haspopup="dialog" aria-expanded={isOpen} onClick={() => setOpen(true)}>
          {t('Menu')}
        </Button>
        {isOpen && (
          <Suspense>
            <Menu onClose={() => setOpen(false)}>
              <Navigation
                onSearch={palette.open}
                onShortcuts={showShortcuts}
                onChosen={() => setOpen(false)}
              />
            </Menu>
          </Suspense>
        )}
      </header>
      <main id="content" className="mx-auto w-full min-w-0 max-w-7xl flex-1 px-4 py-6 md:px-8">
        <ViewNotice />
        {isAllowed ? (
          <Outlet key={account_id} />
        ) : (
          <EmptyState title={t('Your role in this account does not include this page.')} />
        )}
      </main>
      <SessionQuestions />
      <LostNotice />
      <Toasts />
      {hasShortcuts && (
        <Suspense>
          <ShortcutList command={COMMAND} onClose={() => setShortcuts(false)} />
        </Suspense>
      )}
      {palette.typed !== null && (
        <Suspense>
          <Palette typed={palette.typed} onTyped={palette.setTyped} onClose={palette.close} />
        </Suspense>
      )}
    </div>
  )
}
