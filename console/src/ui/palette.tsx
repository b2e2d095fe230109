/** The command palette: opens any page, and any object by its id. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { type Session, useAccount, useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { NAVIGATION } from '../navigation.ts'

type Found = AnswerOf<'search'>['data'][number]

interface Goal {
  readonly key: string
  readonly label: string
  readonly note: string
  readonly path: string
  readonly search: Readonly<Record<string, string>>
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

/** Finds pages by name, accounts by name and objects by id. */
function useGoals(typed: string) {
  const session = useSession()
  const account = useAccount()
  const q = useDeferredValue(typed.trim())
  const found = useGet('search', { q }, { enabled: HAS_DIGIT.test(q) })
  const words = typed.trim().toLowerCase()
  const matchesWords = (...texts: readonly string[]) =>
    texts.some((text) => text.toLowerCase().includes(words))
  const objects = (HAS_DIGIT.test(q) ? (found.data?.data ?? []) : []).map((one) => ({
    key: `${one.type} ${one.id}`,
    label: one.name,
    note: `${typeNames()[one.type]} ${one.id}`,
    ...toPlace(one, session),
  }))
  const pages = NAVIGATION.flatMap(({ title, pages }) =>
    pages
      .filter(({ name, isFor }) => isFor(session, account) && matchesWords(name, t(name)))
      .map(({ path, name }) => ({
        key: path,
        label: t(name),
        note: t(title),
        path,
        search: { account: account.account_id },
      })),
  )
  const accounts = session.accounts
    .filter(({ account_id, name }) => account_id !== account.account_id && matchesWords(name, account_id))
    .map(({ account_id, name }) => ({
      key: account_id,
      label: name,
      note: t('Switch to this account'),
      path: '/',
      search: { account: account_id },
    }))
  const groups: readonly GoalGroup[] = [
    { value: t('Found by id'), items: objects },
    { value: t('Pages'), items: pages },
    { value: t('Accounts'), items: accounts },
  ]
  return { groups: groups.filter(({ items }) => items.length > 0), isSearching: found.isFetching }
}

export function Palette({ onClose }: { onClose(): void }) {
  const [typed, setTyped] = useState('')
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
            onValueChange={setTyped}
            itemToStringValue={({ label }: Goal) => label}
          >
            <Autocomplete.Input
              aria-label={t('Find a page, an account or any id')}
              placeholder={t('Find a page, an account or any id')}
              className="border-line border-b bg-surface px-4 py-3 text-lg outline-none placeholder:text-quiet"
            />
            <Autocomplete.Empty className="px-4 py-6 text-center text-quiet empty:hidden">
              {isSearching ? t('Searching') : t('Nothing has this name or id.')}
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
