/** The dialog that invites a person to the installation. */
import { useLingui } from '@lingui/react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { createInvitation } from '../../../../schemas/management/people/users.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Field, SelectField } from '../../ui/field.tsx'
import { FormError } from '../../ui/states.tsx'
import { Invited } from './invited.tsx'
import { type InstallationRole, installationRoles, NO_ROLE, roleOf } from './roles.ts'

export function Invite({ onClose }: { onClose(): void }) {
  useLingui()
  const queries = useQueryClient()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<InstallationRole | typeof NO_ROLE>(NO_ROLE)
  const invite = useMutation({
    mutationFn: () =>
      request<typeof createInvitation>('POST', '/invitations', { email, installation_role: roleOf(role) }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['/invitations'] }),
  })
  return (
    <Dialog
      title={t('Invite a person')}
      description={t('The link works once and for seven days.')}
      isOpen
      onClose={onClose}
    >
      {invite.data ? (
        <>
          <Invited url={invite.data.url} />
          <Actions>
            <Button kind="primary" onClick={onClose}>
              {t('Done')}
            </Button>
          </Actions>
        </>
      ) : (
        <form
          className="flex flex-col gap-4"
          onSubmit={(event) => {
            event.preventDefault()
            invite.mutate()
          }}
        >
          <Field
            label={t('Email')}
            type="email"
            required
            value={email}
            onChange={(event) => setEmail(event.target.value)}
          />
          <SelectField
            label={t('Role in the installation')}
            value={role}
            onChange={(event) => setRole(event.target.value as typeof role)}
          >
            {Object.entries(installationRoles()).map(([one, name]) => (
              <option key={one} value={one}>
                {name}
              </option>
            ))}
          </SelectField>
          {invite.error && <FormError error={invite.error} />}
          <Actions>
            <Button onClick={onClose}>{t('Cancel')}</Button>
            <Button type="submit" kind="primary" isBusy={invite.isPending}>
              {t('Make the link')}
            </Button>
          </Actions>
        </form>
      )}
    </Dialog>
  )
}
