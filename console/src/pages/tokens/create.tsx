/** Creates a management token of an account, or of the installation. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SCOPES, type Scope } from '../../../../schemas/management/operation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { parseFieldTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { CheckFields, DialogForm } from '../../ui/form.tsx'
import { ExpiresField, ProgramNameField } from '../token-fields.tsx'

export type CreatedToken = AnswerOf<'createToken'>

/** The paths of the lists of tokens: an account's, and the installation's. */
export const TOKENS = ['/tokens', '/installation/tokens'] as const

const nameScopes = (): Readonly<Record<Scope, string>> => ({
  read: t('read: everything but secrets'),
  keys: t('keys: change keys, and decide requests for keys'),
  accounts: t('accounts: change accounts and members'),
  billing: t('billing: move money'),
  knowledge: t('knowledge: change knowledge bases and agents'),
  admin: t('admin: change everything else'),
})

interface CreateDialogProps {
  /** Null for the installation. */
  readonly accountId: string | null
  onClose(): void
  onCreated(token: CreatedToken): void
}

export function CreateTokenDialog({ accountId, onClose, onCreated }: CreateDialogProps) {
  const form = useFields(`token of ${accountId}`, {
    name: '',
    expires_at: '',
    chosen: ['read'] as readonly Scope[],
  })
  const { values, field, set } = form
  const { chosen } = values
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: TOKENS },
    mutationFn: () => {
      const scopes = SCOPES.filter((scope) => chosen.includes(scope))
      const wanted = { name: values.name, scopes, expires_at: parseFieldTime(values.expires_at) }
      const once = { idempotencyKey }
      return accountId === null
        ? request('createInstallationToken', wanted, once)
        : request('createToken', { ...wanted, account_id: accountId }, once)
    },
    onSuccess: (token) => {
      onClose()
      onCreated(token)
    },
  })
  const names = nameScopes()
  return (
    <Dialog title={t('Create a token')} onClose={onClose}>
      <DialogForm sends={creating} fields={form} submit={t('Create')} isDisabled={chosen.length === 0}>
        <ProgramNameField {...field('name')} />
        <ExpiresField {...field('expires_at')} />
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 font-medium text-sm">{t('Scopes')}</legend>
          <CheckFields
            options={SCOPES.map((scope) => [scope, names[scope]])}
            chosen={chosen}
            onChoose={(chosen) => set({ chosen })}
          />
        </fieldset>
      </DialogForm>
    </Dialog>
  )
}
