/** The dialog that creates an organization. */
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from './api/client.ts'
import { sessionQuery } from './api/session.ts'
import { t } from './i18n.ts'
import { NameDialog } from './ui/name-dialog.tsx'

export function CreateOrganization({ onClose }: { onClose(): void }) {
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
