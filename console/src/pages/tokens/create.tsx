/** Creates a management token of an account, or of the installation. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SCOPES, type Scope } from '../../../../schemas/management/operation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { parseFieldTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckFields, DialogForm, useFields } from '../../ui/form.tsx'
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
  const { texts, field } = useFields({ name: '', expires: '' })
  const [chosen, setChosen] = useState<readonly Scope[]>(['read'])
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: TOKENS },
    mutationFn: () => {
      const scopes = SCOPES.filter((scope) => chosen.includes(scope))
      const wanted = { name: texts.name, scopes, expires_at: parseFieldTime(texts.expires) }
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
      <DialogForm sends={creating} submit={t('Create')} isDisabled={chosen.length === 0} onClose={onClose}>
        <ProgramNameField {...field('name')} />
        <ExpiresField {...field('expires')} />
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 font-medium text-sm">{t('Scopes')}</legend>
          <CheckFields
            options={SCOPES.map((scope) => [scope, names[scope]])}
            chosen={chosen}
            onChoose={setChosen}
          />
        </fieldset>
      </DialogForm>
    </Dialog>
  )
}
