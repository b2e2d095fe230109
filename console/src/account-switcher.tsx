/** Chooses the account that the page shows. */
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useAccount, useSession } from './api/session.ts'
import { t } from './i18n.ts'
import { Button } from './ui/button.tsx'
import { SelectField } from './ui/form.tsx'

const CreateOrganization = lazy(async () => ({
  default: (await import('./create-organization.tsx')).CreateOrganization,
}))

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
      {isCreating && (
        <Suspense>
          <CreateOrganization onClose={() => setCreating(false)} />
        </Suspense>
      )}
    </div>
  )
}
