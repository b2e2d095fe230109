/** Accounts of the installation, for operators. */
import { getRouteApi } from '@tanstack/react-router'
import { useList } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { EnabledBadge, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, Money, Time } from '../../ui/text.tsx'
import { SearchForm } from '../filters.tsx'
import { type Account, AccountDetail } from './detail.tsx'

const route = getRouteApi('/signed-in/accounts')

export function Accounts() {
  const { search, open } = route.useSearch()
  const list = useList('listAccounts', { search })
  const change = useChangeSearch()
  const columns: Column<Account>[] = [
    { name: t('Name'), cell: ({ id, name }) => <OpenLink search={{ open: id }}>{name}</OpenLink> },
    { name: t('Id'), from: 'wide', cell: ({ id }) => <Id id={id} /> },
    { name: t('Kind'), cell: ({ kind }) => (kind === 'organization' ? t('Organization') : t('Personal')) },
    { name: t('Status'), cell: ({ enabled }) => <EnabledBadge isEnabled={enabled} /> },
    { name: t('Balance'), isNumber: true, cell: ({ wallet }) => <Money amount={wallet.balance} /> },
    { name: t('Used'), isNumber: true, cell: ({ wallet }) => <Money amount={wallet.used} /> },
    { name: t('Created'), isTime: true, from: 'wide', cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <>
      <PageHeader
        title={t('Accounts')}
        description={t('Every account of this installation, with its wallet.')}
      />
      <SearchForm label={t('Id or name')} value={search} />
      <ListPanel caption={t('Accounts')} list={list} columns={columns} empty={t('No accounts match.')} />
      <Drawer title={t('Account')} isOpen={open !== undefined} onClose={() => change({ open: undefined })}>
        {open !== undefined && <AccountDetail key={open} id={open} />}
      </Drawer>
    </>
  )
}
