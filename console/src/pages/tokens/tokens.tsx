/** Management tokens of an account, or of the installation. */
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { type AnswerOf, linkTo, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton, Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { Badge, EmptyState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { ScopeField, useIsWhole } from '../scope-field.tsx'
import { type CreatedToken, CreateTokenDialog, TOKENS } from './create.tsx'

const route = getRouteApi('/signed-in/tokens')

type Token = AnswerOf<'listTokens'>['data'][number]

/** Returns a first request with a token. @param accountId null: the installation */
const firstRequest = (token: string, accountId: string | null) =>
  `curl '${location.origin}${accountId === null ? linkTo('listAccounts', {}) : linkTo('listKeys', { account_id: accountId })}' \\
  -H "Authorization: Bearer ${token}"`

const create = (accountId: string | null) =>
  `tollgate token create --name reports --scopes read${accountId === null ? '' : ` --account ${accountId}`}`

function TokenState({ token: { revoked_at, expires_at } }: { readonly token: Token }) {
  if (revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  const isOver = expires_at !== null && Date.parse(expires_at) <= Date.now()
  return isOver ? <Badge tone="bad">{t('Expired')}</Badge> : <Badge tone="good">{t('Active')}</Badge>
}

const revoke = ({ id, account_id }: Token) =>
  account_id === null ? request('revokeInstallationToken', { id }) : request('revokeToken', { id })

const columnsOf = (mayChange: boolean): Column<Token>[] => [
  {
    name: t('Name'),
    cell: ({ name, prefix }) => (
      <span className="flex flex-col">
        <span className="font-medium">{name}</span>
        <code className="font-mono text-quiet text-xs">{prefix}…</code>
      </span>
    ),
  },
  { name: t('State'), cell: (token) => <TokenState token={token} /> },
  { name: t('Scopes'), cell: ({ scopes }) => scopes.join(', ') },
  { name: t('Created'), cell: ({ created_at }) => <Time at={created_at} /> },
  { name: t('Last used'), cell: ({ last_used_at }) => last_used_at && <Time at={last_used_at} /> },
  {
    name: t('Expires'),
    cell: ({ expires_at }) => (expires_at === null ? t('Never') : <Time at={expires_at} />),
  },
  {
    name: t('Actions'),
    cell: (token) =>
      mayChange &&
      token.revoked_at === null && (
        <ConfirmButton
          title={t('Revoke {name}', { name: token.name })}
          description={t('Programs that use the token are refused at once. This cannot be undone.')}
          name={token.name}
          act={t('Revoke')}
          meta={{ done: t('Token revoked'), changes: TOKENS }}
          onConfirm={() => revoke(token)}
        />
      ),
  },
]

export function Tokens() {
  const account = useAccount()
  const change = useChangeSearch()
  const { scope } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const { user } = useSession()
  const mayChange = isWhole ? user.installation_role === 'operator' : account.role === 'owner'
  const accountId = isWhole ? null : account.account_id
  const input = accountId === null ? {} : { account_id: accountId }
  const list = useList(accountId === null ? 'listInstallationTokens' : 'listTokens', input as never)
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<CreatedToken | null>(null)
  const title = isWhole ? t('Tokens of the installation') : t('Tokens of the account')
  return (
    <>
      <PageHeader
        title={t('Management tokens')}
        description={t('Programs call the management API with a token. API keys do not open it.')}
        actions={
          mayChange && (
            <Button kind="primary" onClick={() => setCreating(true)}>
              {t('Create a token')}
            </Button>
          )
        }
      />
      <div className="mb-4 max-w-xs">
        <ScopeField value={scope} onChange={(value) => change({ scope: value })} />
      </div>
      <ListPanel
        title={title}
        caption={title}
        list={list}
        columns={columnsOf(mayChange)}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title={t('There is no token yet.')}>
            <CodeBlock label="curl" code={firstRequest('$TOLLGATE_MANAGEMENT_TOKEN', accountId)} />
            {user.installation_role !== null && (
              <CodeBlock label={t('On the machine of the service')} code={create(accountId)} />
            )}
          </EmptyState>
        }
      />
      {isCreating && (
        <CreateTokenDialog
          accountId={accountId}
          onClose={() => setCreating(false)}
          onCreated={(token) => {
            setCreating(false)
            setCreated(token)
          }}
        />
      )}
      {created && (
        <Dialog
          title={created.name}
          description={t('It is shown this once. Keep it where your program reads its secrets.')}
          onClose={() => setCreated(null)}
        >
          <div className="flex flex-col gap-3">
            <CodeBlock isWrapped label={t('Token')} code={created.token} />
            <CodeBlock label="curl" code={firstRequest(created.token, created.account_id)} />
            <Done onClose={() => setCreated(null)} />
          </div>
        </Dialog>
      )}
    </>
  )
}
