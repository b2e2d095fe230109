/** Management tokens of an account, or of the installation. */

import { getRouteApi } from '@tanstack/react-router'
import { Terminal } from 'lucide-react'
import { useState } from 'react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, linkTo, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { Badge, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { ScopeFilter, useIsWhole } from '../filters.tsx'
import { type CreatedToken, CreateTokenDialog, TOKENS } from './create.tsx'

const route = getRouteApi('/signed-in/tokens')

type Token = AnswerOf<'listTokens'>['data'][number]

/** Prints a first request with a token. @param accountId null for the installation */
const printFirstRequest = (token: string, accountId: string | null) =>
  `curl '${location.origin}${accountId === null ? linkTo('listAccounts', {}) : linkTo('listKeys', { account_id: accountId })}' \\
  -H "Authorization: Bearer ${token}"`

const printCreate = (accountId: string | null) =>
  `tollgate token create --name reports --scopes read${accountId === null ? '' : ` --account ${accountId}`}`

function TokenStatus({ revoked_at, expires_at }: Token) {
  if (revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  const isOver = expires_at !== null && Date.parse(expires_at) <= Date.now()
  return isOver ? <Badge tone="bad">{t('Expired')}</Badge> : <Badge tone="good">{t('Active')}</Badge>
}

function RevokeToken({ token: { id, name, account_id } }: { readonly token: Token }) {
  const revoke = account_id === null ? 'revokeInstallationToken' : 'revokeToken'
  return (
    <Action
      kind="quiet"
      confirm={{
        title: t('Revoke {name}', { name }),
        description: t('Programs that use this token will be refused. This cannot be undone.'),
        name: readTyped(revoke, { name }),
        submit: t('Revoke'),
      }}
      done={t('Token revoked')}
      changes={TOKENS}
      run={() => request(revoke, { id })}
    >
      {t('Revoke')}
    </Action>
  )
}

const listColumns = (mayChange: boolean): Column<Token>[] => [
  {
    name: t('Name'),
    cell: ({ name, prefix }) => (
      <span className="flex flex-col">
        <span className="font-medium">{name}</span>
        <code className="font-mono text-quiet text-xs">{prefix}…</code>
      </span>
    ),
  },
  { name: t('Status'), cell: (token) => <TokenStatus {...token} /> },
  { name: t('Scopes'), from: 'wide', cell: ({ scopes }) => scopes.join(', ') },
  { name: t('Created'), isTime: true, from: 'wide', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: t('Last used'), isTime: true, cell: ({ last_used_at }) => <Time at={last_used_at} none="" /> },
  { name: t('Expires'), isTime: true, cell: ({ expires_at }) => <Time at={expires_at} none={t('Never')} /> },
  {
    name: t('Actions'),
    cell: (token) => mayChange && token.revoked_at === null && <RevokeToken token={token} />,
  },
]

export function Tokens() {
  const account = useAccount()
  const { scope } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const { user } = useSession()
  const mayChange = isWhole ? user.installation_role === 'operator' : account.role === 'owner'
  const accountId = isWhole ? null : account.account_id
  const input = accountId === null ? {} : { account_id: accountId }
  const list = useList(accountId === null ? 'listInstallationTokens' : 'listTokens', input as never)
  const [created, setCreated] = useState<CreatedToken | null>(null)
  const add = (label: string, kind?: 'primary') =>
    mayChange && (
      <DialogButton
        kind={kind}
        dialog={(onClose) => (
          <CreateTokenDialog accountId={accountId} onClose={onClose} onCreated={setCreated} />
        )}
      >
        {label}
      </DialogButton>
    )
  return (
    <>
      <PageHeader
        title={t('Management tokens')}
        description={t('Programs call the management API with a token. An API key does not work there.')}
        actions={add(t('Create a token'), 'primary')}
      />
      <div className="mb-4 max-w-xs">
        <ScopeFilter value={scope} />
      </div>
      <ListPanel
        title={isWhole ? t('Tokens of the installation') : t('Tokens of the account')}
        list={list}
        columns={listColumns(mayChange)}
        empty={{
          title: t('There are no tokens yet.'),
          icon: Terminal,
          docs: 'management-api.md',
          action: add(t('Create your first token')),
        }}
      >
        <CodeBlock label="curl" code={printFirstRequest('$TOLLGATE_MANAGEMENT_TOKEN', accountId)} />
        {user.installation_role !== null && (
          <CodeBlock label={t('On the machine of the service')} code={printCreate(accountId)} />
        )}
      </ListPanel>
      {created && (
        <Dialog
          title={created.name}
          description={t("It is shown only once. Store it with your program's other secrets.")}
          onClose={() => setCreated(null)}
        >
          <div className="flex flex-col gap-3">
            <CodeBlock isWrapped label={t('Token')} code={created.token} />
            <CodeBlock label="curl" code={printFirstRequest(created.token, created.account_id)} />
            <Done onClose={() => setCreated(null)} />
          </div>
        </Dialog>
      )}
    </>
  )
}
