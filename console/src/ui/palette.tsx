/** The command palette: opens any page and any object, and begins what its reader wants to do. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue } from 'react'
import { catalogQuery } from '../api/catalog.ts'
import type { AnswerOf } from '../api/client.ts'
import { useKeyNames } from '../api/key-names.ts'
import { useGet } from '../api/read.ts'
import { type Access, type Session, useAccount, useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { NAVIGATION } from '../navigation.ts'

type Found = AnswerOf<'search'>['data'][number]

interface Goal {
  readonly key: string
  readonly label: string
  readonly note: string
  readonly path: string
  readonly search: Readonly<Record<string, string | true>>
}

interface GoalGroup {
  readonly value: string
  readonly items: readonly Goal[]
}

/** An id of any kind has a digit. */
const HAS_DIGIT = /\d/

const typeNames = (): Readonly<Record<Found['type'], string>> => ({
  call: t('Call'),
  task: t('Task'),
  key: t('Key'),
  account: t('Account'),
  user: t('User'),
})

function toPlace({ type, id, account_id, name }: Found, { user }: Session): Pick<Goal, 'path' | 'search'> {
  const account = { account: account_id }
  const isOperator = user.installation_role !== null
  switch (type) {
    case 'call':
      return { path: '/calls', search: { ...account, call: id } }
    case 'task':
      return { path: '/tasks', search: { ...account, task: id } }
    case 'key':
      return { path: '/keys', search: { ...account, key: id } }
    case 'account':
      return isOperator ? { path: '/accounts', search: { open: id } } : { path: '/', search: account }
    case 'user':
      return isOperator ? { path: '/users', search: { search: name } } : { path: '/profile', search: account }
  }
}

/** The most entries of a kind. */
const MAX_FOUND = 6
/** One letter is in every name. */
const MIN_CHARS = 2

/** Finds what the reader may see: the parts of the account and of the installation that are searched by name. */
function useNamed(q: string) {
  const { installation_role: installation } = useSession().user
  const { account_id, kind, role } = useAccount()
  const isAsked = q.length >= MIN_CHARS
  const isStaff = installation !== null && isAsked
  const reads = (...roles: readonly string[]) => isAsked && roles.includes(role)
  const search = { search: q, limit: MAX_FOUND }
  const models = useQuery({ ...catalogQuery, enabled: isAsked })
  const keys = useKeyNames(isAsked)
  const members = useGet(
    'listMembers',
    { account_id },
    { enabled: kind === 'organization' && reads('owner', 'admin', 'auditor') },
  )
  const accounts = useGet('listAccounts', search, { enabled: isStaff })
  const users = useGet('listUsers', search, { enabled: isStaff })
  const channels = useGet('listChannels', {}, { enabled: isStaff })
  return {
    models: models.data ?? [],
    keys: keys.data?.keys ?? [],
    members: members.data?.data ?? [],
    accounts: accounts.data?.data ?? [],
    users: users.data?.data ?? [],
    channels: channels.data?.data ?? [],
  }
}

/** What the reader can do from anywhere. */
function listActions(session: Session, { account_id: account, role }: Access): Goal[] {
  const mayChangeKeys = role === 'owner' || role === 'admin'
  const mayPay = role === 'owner' || role === 'billing'
  const isOperator = session.user.installation_role === 'operator'
  const act = (key: string, label: string, path: string, search = {}): Goal => ({
    key: `act ${key}`,
    label,
    note: t('Action'),
    path,
    search: { account, ...search },
  })
  return [
    ...(mayChangeKeys ? [act('key', t('Create a key'), '/keys', { create: true })] : []),
    ...(mayPay ? [act('pay', t('Top up'), '/billing')] : []),
    ...(isOperator ? [act('pause', t('Pause a channel'), '/channels')] : []),
  ]
}

type Named = ReturnType<typeof useNamed>

interface NamedSearch extends Named {
  /** Other accounts of the reader. */
  readonly own: readonly Goal[]
  readonly here: Goal['search']
  readonly isOperator: boolean
  matches(...texts: readonly (string | null)[]): boolean
  list<One>(all: readonly One[], match: (one: One) => boolean, toGoal: (one: One) => Goal): Goal[]
}

const listAccountsAndPeople = ({ own, here, matches, list, ...named }: NamedSearch): GoalGroup[] => [
  {
    value: t('Accounts'),
    items: [
      ...own,
      ...list(
        named.accounts,
        ({ id }) => !own.some(({ key }) => key === `account ${id}`),
        ({ id, name }) => ({
          key: `account ${id}`,
          label: name,
          note: id,
          path: '/accounts',
          search: { open: id },
        }),
      ),
    ],
  },
  {
    value: t('People'),
    items: [
      ...list(
        named.members,
        ({ email, name }) => matches(email, name),
        ({ account_id, email, name }) => ({
          key: `member ${account_id}`,
          label: name,
          note: email ?? account_id,
          path: '/members',
          search: here,
        }),
      ),
      ...list(
        named.users,
        () => true,
        ({ id, email, name }) => ({
          key: `user ${id}`,
          label: name,
          note: email,
          path: '/users',
          search: { search: email },
        }),
      ),
    ],
  },
]

/** Returns what is found by name besides pages and actions. */
const listNamed = ({ own, here, isOperator, matches, list, ...named }: NamedSearch): GoalGroup[] => [
  {
    value: t('Keys'),
    items: list(
      named.keys,
      ({ id, name, key_prefix }) => matches(id, name, key_prefix),
      ({ id, name }) => ({
        key: `key ${id}`,
        label: name,
        note: id,
        path: '/keys',
        search: { ...here, key: id },
      }),
    ),
  },
  {
    value: t('Models'),
    items: list(
      named.models,
      ({ id, display_name }) => matches(id, display_name),
      ({ id, display_name }) => ({
        key: `model ${id}`,
        label: display_name ?? id,
        note: id,
        path: '/models',
        search: { ...here, model: id },
      }),
    ),
  },
  {
    value: t('Channels'),
    items: [
      ...list(
        named.channels,
        ({ id }) => matches(id),
        ({ id }) => ({
          key: `channel ${id}`,
          label: id,
          note: t('Channel'),
          path: '/channels',
          search: { channel: id },
        }),
      ),
      ...list(
        isOperator ? named.channels : [],
        ({ id, state }) => state === 'active' && matches(t('Pause {name}', { name: id })),
        ({ id }) => ({
          key: `pause ${id}`,
          label: t('Pause {name}', { name: id }),
          note: t('Action'),
          path: '/channels',
          search: { channel: id },
        }),
      ),
    ],
  },
  ...listAccountsAndPeople({ own, here, isOperator, matches, list, ...named }),
]

/** Finds pages and actions by name, and everything else by name or id. */
function useGoals(typed: string) {
  const session = useSession()
  const account = useAccount()
  const q = useDeferredValue(typed.trim())
  const isOperator = session.user.installation_role === 'operator'
  const found = useGet('search', { q }, { enabled: HAS_DIGIT.test(q) })
  const named = useNamed(q)
  const words = typed.trim().toLowerCase()
  const matches = (...texts: readonly (string | null)[]) =>
    texts.some((text) => text?.toLowerCase().includes(words))
  const here = { account: account.account_id }
  const byId = (HAS_DIGIT.test(q) ? (found.data?.data ?? []) : []).map((one) => ({
    key: `${one.type} ${one.id}`,
    label: one.name,
    note: `${typeNames()[one.type]} ${one.id}`,
    ...toPlace(one, session),
  }))
  const ids = new Set(byId.map(({ key }) => key))
  const list = <One,>(all: readonly One[], match: (one: One) => boolean, toGoal: (one: One) => Goal) =>
    words.length < MIN_CHARS
      ? []
      : all
          .filter(match)
          .slice(0, MAX_FOUND)
          .map(toGoal)
          .filter(({ key }) => !ids.has(key))
  const pages = NAVIGATION.flatMap(({ title, pages }) =>
    pages
      .filter(({ name, isFor }) => isFor(session, account) && matches(name, t(name)))
      .map(({ path, name }) => ({ key: path, label: t(name), note: t(title), path, search: here })),
  )
  const own = session.accounts
    .filter(({ account_id, name }) => account_id !== account.account_id && matches(name, account_id))
    .map(({ account_id, name }) => ({
      key: `account ${account_id}`,
      label: name,
      note: t('Switch to this account'),
      path: '/',
      search: { account: account_id },
    }))
  const groups: readonly GoalGroup[] = [
    { value: t('Found by id'), items: byId },
    { value: t('Pages'), items: pages },
    { value: t('Actions'), items: listActions(session, account).filter(({ label }) => matches(label)) },
    ...listNamed({ ...named, own, here, isOperator, matches, list }),
  ]
  return { groups: groups.filter(({ items }) => items.length > 0), isSearching: found.isFetching }
}

interface PaletteProps {
  readonly typed: string
  onTyped(text: string): void
  onClose(): void
}

export function Palette({ typed, onTyped, onClose }: PaletteProps) {
  const { groups, isSearching } = useGoals(typed)
  const navigate = useNavigate()
  const go = ({ path, search: to }: Goal) => {
    onClose()
    void navigate({ to: path, search: to })
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 bg-shade" />
        <Dialog.Popup
          aria-label={t('Search')}
          className="fixed inset-x-4 top-[12vh] mx-auto flex max-h-[70vh] max-w-xl flex-col overflow-hidden rounded-lg border border-line bg-surface shadow-xl"
        >
          <Autocomplete.Root
            open
            inline
            mode="none"
            items={groups}
            autoHighlight="always"
            keepHighlight
            value={typed}
            onValueChange={onTyped}
            itemToStringValue={({ label }: Goal) => label}
          >
            <Autocomplete.Input
              id="palette-input"
              aria-label={t('Find a page, a name or any id')}
              placeholder={t('Find a page, a name or any id')}
              className="border-line border-b bg-surface px-4 py-3 text-lg outline-none placeholder:text-quiet"
            />
            <Autocomplete.Empty className="px-4 py-6 text-center text-quiet empty:hidden">
              {isSearching ? t('Searching') : t('Nothing matches.')}
            </Autocomplete.Empty>
            <Autocomplete.List className="overflow-y-auto p-2 empty:hidden">
              {(group: GoalGroup) => (
                <Autocomplete.Group key={group.value} items={group.items}>
                  <Autocomplete.GroupLabel className="px-2 py-1 text-quiet text-xs">
                    {group.value}
                  </Autocomplete.GroupLabel>
                  <Autocomplete.Collection>
                    {(goal: Goal) => (
                      <Autocomplete.Item
                        key={goal.key}
                        value={goal}
                        onClick={() => go(goal)}
                        className="flex cursor-pointer items-baseline justify-between gap-4 rounded-md px-2 py-1.5 data-highlighted:bg-accent-wash data-highlighted:text-accent"
                      >
                        <span className="truncate">{goal.label}</span>
                        <span className="truncate text-quiet text-xs">{goal.note}</span>
                      </Autocomplete.Item>
                    )}
                  </Autocomplete.Collection>
                </Autocomplete.Group>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
