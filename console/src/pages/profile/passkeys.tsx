/** The passkeys of the user: added, renamed, removed. */
import { useLingui } from '@lingui/react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { removePasskey, renamePasskey } from '../../../../schemas/management/people/profile.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, ConfirmByTyping, Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { FormError } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { makePasskey } from '../sign-in/passkey.ts'
import { SECURITY_KEY, Section, type Security } from './section.tsx'

type Passkey = Security['passkeys'][number]

/** A dialog that asks for the name of a passkey. */
function NameDialog({
  title,
  name: former,
  act,
  onClose,
}: {
  readonly title: string
  readonly name: string
  act(name: string): Promise<unknown>
  onClose(): void
}) {
  useLingui()
  const queries = useQueryClient()
  const [name, setName] = useState(former)
  const save = useMutation({
    mutationFn: () => act(name),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: SECURITY_KEY })
      onClose()
    },
  })
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <Field
          label={t('Name')}
          hint={t('Such as the device that keeps it.')}
          name="passkey-name"
          required
          maxLength={60}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        {save.error && <FormError error={save.error} />}
        <Actions>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="primary" isBusy={save.isPending}>
            {t('Save')}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

export function Passkeys({ security }: { readonly security: Security }) {
  useLingui()
  const queries = useQueryClient()
  const [isAdding, setAdding] = useState(false)
  const [renamed, setRenamed] = useState<Passkey | null>(null)
  const [removed, setRemoved] = useState<Passkey | null>(null)
  const remove = useMutation({
    meta: { done: t('Passkey removed') },
    mutationFn: ({ id }: Passkey) => request<typeof removePasskey>('DELETE', '/me/passkeys/{id}', { id }),
    onSettled: async () => {
      setRemoved(null)
      await queries.invalidateQueries({ queryKey: SECURITY_KEY })
    },
  })
  return (
    <Section
      title={t('Passkeys')}
      note={t('Sign in with your fingerprint, face, or the PIN of a device. Nothing secret leaves it.')}
    >
      {security.passkeys.length > 0 && (
        <Table
          caption={t('Passkeys')}
          rows={security.passkeys}
          keyOf={({ id }) => id}
          columns={[
            { name: t('Name'), cell: ({ name }) => <span className="font-medium">{name}</span> },
            { name: t('Created'), cell: ({ created_at }) => <Time at={created_at} /> },
            {
              name: t('Last used'),
              cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : t('Never')),
            },
            {
              name: t('Actions'),
              cell: (passkey) => (
                <span className="flex gap-1">
                  <Button kind="quiet" onClick={() => setRenamed(passkey)}>
                    {t('Rename')}
                  </Button>
                  <Button kind="quiet" onClick={() => setRemoved(passkey)}>
                    {t('Remove')}
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      <div>
        <Button onClick={() => setAdding(true)}>{t('Add a passkey')}</Button>
      </div>
      {isAdding && (
        <NameDialog title={t('Add a passkey')} name="" act={makePasskey} onClose={() => setAdding(false)} />
      )}
      {renamed && (
        <NameDialog
          title={t('Rename {name}', { name: renamed.name })}
          name={renamed.name}
          act={(name) =>
            request<typeof renamePasskey>('PATCH', '/me/passkeys/{id}', { id: renamed.id, name })
          }
          onClose={() => setRenamed(null)}
        />
      )}
      {removed && (
        <ConfirmByTyping
          title={t('Remove {name}', { name: removed.name })}
          description={t('It signs you in no more. Remove it from your device as well.')}
          name={removed.name}
          act={t('Remove')}
          isOpen
          isBusy={remove.isPending}
          error={remove.error}
          onClose={() => setRemoved(null)}
          onConfirm={() => remove.mutate(removed)}
        />
      )}
    </Section>
  )
}
