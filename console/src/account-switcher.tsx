/** Chooses the account that the page shows, or creates an organization. */
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { request } from './api/client.ts'
import { sessionQuery, useAccount, useSession } from './api/session.ts'
import { t } from './i18n.ts'
import { Button } from './ui/button.tsx'
import { SelectField } from './ui/form.tsx'
import { NameDialog } from './ui/name-dialog.tsx'

/** Changes the account and keeps the rest of the URL. */
export function AccountSwitcher() {
  const { accounts } = useSession()
  const account = useAccount()
  const navigate = useNavigate()
  const [isCreating, setCreating] = useState(false)
  const isOwn = accounts.some(({ account_id }) => account_id === account.account_id)
  return (
    <div className="flex items-end gap-1">
      <div className="min-w-0 flex-1">
        <SelectField
          label={t('Account')}
          value={account.account_id}
          onText={(text) => void navigate({ to: '.', search: (all) => ({ ...all, account: text }) })}
          options={[...accounts, ...(isOwn ? [] : [account])].map(
            ({ account_id, name }) => [account_id, name] as const,
          )}
        />
      </div>
      <Button
        kind="quiet"
        className="px-2"
        aria-label={t('Create an organization')}
        title={t('Create an organization')}
        onClick={() => setCreating(true)}
      >
        <Plus aria-hidden size={16} />
      </Button>
      {isCreating && <CreateOrganization onClose={() => setCreating(false)} />}
    </div>
  )
}

function CreateOrganization({ onClose }: { onClose(): void }) {
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const queries = useQueryClient()
  const navigate = useNavigate()
  const create = async (name: string) => {
    const { id } = await request('createOrganization', { name }, { idempotencyKey })
    await queries.invalidateQueries(sessionQuery)
    onClose()
    await navigate({ to: '/members', search: { account: id } })
  }
  return (
    <NameDialog
      title={t('Create an organization')}
      description={t('Members share its wallet. You become its owner.')}
      maxLength={100}
      submit={t('Create')}
      onName={create}
      onClose={onClose}
    />
  )
}
