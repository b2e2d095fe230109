/** Creates a management token of an account, or of the installation. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { SCOPES, type Scope } from '../../../../schemas/management/operation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { instantOfField } from '../../time-zone.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, DialogForm, Field } from '../../ui/form.tsx'
import { ExpiresField } from '../expires-field.tsx'

export type CreatedToken = AnswerOf<'createToken'>

/** Where tokens are listed: those of an account, and those of the installation. */
export const TOKENS = ['/tokens', '/installation/tokens'] as const

const scopeTexts = (): Readonly<Record<Scope, string>> => ({
  read: t('read: everything but secrets'),
  keys: t('keys: change keys and requests for them'),
  accounts: t('accounts: change accounts and members'),
  billing: t('billing: move money'),
  knowledge: t('knowledge: change knowledge bases and agents'),
  admin: t('admin: change all else'),
})

interface CreateDialogProps {
  /** null: the installation. */
  readonly accountId: string | null
  onClose(): void
  onCreated(token: CreatedToken): void
}

export function CreateTokenDialog({ accountId, onClose, onCreated }: CreateDialogProps) {
  const [name, setName] = useState('')
  const [expires, setExpires] = useState('')
  const [chosen, setChosen] = useState<readonly Scope[]>(['read'])
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: TOKENS },
    mutationFn: () => {
      const scopes = SCOPES.filter((scope) => chosen.includes(scope))
      const wanted = { name, scopes, expires_at: instantOfField(expires) }
      const once = { idempotencyKey }
      return accountId === null
        ? request('createInstallationToken', wanted, once)
        : request('createToken', { ...wanted, account_id: accountId }, once)
    },
    onSuccess: onCreated,
  })
  const toggle = (scope: Scope, isChosen: boolean) =>
    setChosen(isChosen ? [...chosen, scope] : chosen.filter((one) => one !== scope))
  const texts = scopeTexts()
  return (
    <Dialog title={t('Create a token')} onClose={onClose}>
      <DialogForm sends={creating} act={t('Create')} isDisabled={chosen.length === 0} onClose={onClose}>
        <Field
          label={t('Name')}
          hint={t('What uses it, such as a program or a machine.')}
          value={name}
          required
          maxLength={100}
          onText={setName}
        />
        <ExpiresField value={expires} onText={setExpires} />
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 font-medium text-sm">{t('Scopes')}</legend>
          {SCOPES.map((scope) => (
            <CheckField
              key={scope}
              label={texts[scope]}
              checked={chosen.includes(scope)}
              onCheck={(isChosen) => toggle(scope, isChosen)}
            />
          ))}
        </fieldset>
      </DialogForm>
    </Dialog>
  )
}
