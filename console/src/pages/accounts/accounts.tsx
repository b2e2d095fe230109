/** Accounts of the installation, for operators. */
import { getRouteApi } from '@tanstack/react-router'
import { useList } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { Badge, EmptyState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, Money, Time } from '../../ui/text.tsx'
import { SearchForm } from '../search-form.tsx'
import { type Account, AccountDetail } from './detail.tsx'

const route = getRouteApi('/signed-in/accounts')

export function Accounts() {
  const { search, open } = route.useSearch()
  const list = useList('listAccounts', { search })
  const change = useChangeSearch()
  const columns: Column<Account>[] = [
    {
      name: t('Name'),
      cell: ({ id, name }) => (
        <button
          type="button"
          className="font-medium text-accent hover:underline"
          onClick={() => change({ open: id })}
        >
          {name}
        </button>
      ),
    },
    { name: t('Id'), cell: ({ id }) => <Id id={id} /> },
    { name: t('Kind'), cell: ({ kind }) => (kind === 'organization' ? t('Organization') : t('Personal')) },
    {
      name: t('State'),
      cell: ({ enabled }) =>
        enabled ? <Badge tone="good">{t('Active')}</Badge> : <Badge tone="bad">{t('Disabled')}</Badge>,
    },
    { name: t('Balance'), isNumber: true, cell: ({ wallet }) => <Money amount={wallet.balance} /> },
    { name: t('Used'), isNumber: true, cell: ({ wallet }) => <Money amount={wallet.used} /> },
    { name: t('Created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <>
      <PageHeader
        title={t('Accounts')}
        description={t('Every account of this installation, with its wallet.')}
      />
      <SearchForm label={t('Id or name')} value={search} />
      <ListPanel
        caption={t('Accounts')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<EmptyState title={t('No account matches.')} />}
      />
      <Drawer title={t('Account')} isOpen={open !== undefined} onClose={() => change({ open: undefined })}>
        {open !== undefined && <AccountDetail key={open} id={open} />}
      </Drawer>
    </>
  )
}
