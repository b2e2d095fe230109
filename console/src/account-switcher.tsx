/** The account of the page: chosen among those of the reader, and the way to a new organization. */
import { useLingui } from '@lingui/react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { createOrganization } from '../../schemas/management/accounts/accounts.ts'
import { request } from './api/client.ts'
import { sessionQuery, useAccount, useSession } from './api/session.ts'
import { t } from './i18n.ts'
import { Button } from './ui/button.tsx'
import { Actions, Dialog } from './ui/dialog.tsx'
import { Field, SelectField } from './ui/field.tsx'
import { FormError } from './ui/states.tsx'

/** Changes the account, and keeps everything else that is in the URL. */
export function AccountSwitcher() {
  useLingui()
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
          onChange={(event) =>
            void navigate({ to: '.', search: (all) => ({ ...all, account: event.target.value }) })
          }
        >
          {[...accounts, ...(isOwn ? [] : [account])].map(({ account_id, name }) => (
            <option key={account_id} value={account_id}>
              {name}
            </option>
          ))}
        </SelectField>
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
  const [name, setName] = useState('')
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const queries = useQueryClient()
  const navigate = useNavigate()
  const create = useMutation({
    mutationFn: () =>
      request<typeof createOrganization>('POST', '/organizations', { name }, { idempotencyKey }),
    onSuccess: async ({ id }) => {
      await queries.invalidateQueries(sessionQuery)
      onClose()
      await navigate({ to: '/members', search: { account: id } })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <Dialog
      title={t('Create an organization')}
      description={t('Members share its wallet; you are its owner.')}
      isOpen
      onClose={onClose}
    >
      <form onSubmit={submit}>
        <Field
          label={t('Name')}
          required
          maxLength={100}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        {create.error && <FormError error={create.error} />}
        <Actions>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="primary" isBusy={create.isPending}>
            {t('Create')}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
