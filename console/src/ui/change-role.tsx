/** Changes a person's role in a dialog, because a key press in a list would change it at once. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { Changed } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { DialogForm, SelectField } from './form.tsx'

interface ChangeRoleProps<Role extends string> {
  /** The person's name. */
  readonly name: string
  readonly role: Role
  /** The roles to choose from, with their translated names. */
  readonly roles: Partial<Readonly<Record<Role, string>>>
  /** The paths of what the role changes. */
  readonly changes: readonly Changed[]
  /** Sets the role. The dialog shows why it was refused. */
  onRole(role: Role): Promise<unknown>
}

function RoleDialog<Role extends string>({
  name,
  role,
  roles,
  changes,
  onRole,
  onClose,
}: ChangeRoleProps<Role> & { onClose(): void }) {
  const [chosen, setChosen] = useState(role)
  const change = useMutation({
    meta: { done: t('Role changed'), changes },
    mutationFn: () => onRole(chosen),
    onSuccess: onClose,
  })
  return (
    <Dialog title={t('Role of {name}', { name })} onClose={onClose}>
      <DialogForm sends={change} submit={t('Change')} isDisabled={chosen === role}>
        <SelectField
          label={t('Role')}
          value={chosen}
          onText={(text) => setChosen(text as Role)}
          options={Object.entries<string>(roles as Record<Role, string>)}
        />
      </DialogForm>
    </Dialog>
  )
}

/** The button that opens the dialog. */
export function ChangeRole<Role extends string>(props: ChangeRoleProps<Role>) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        {t('Change role')}
      </Button>
      {isOpen && <RoleDialog {...props} onClose={() => setOpen(false)} />}
    </>
  )
}
