/** A dialog that asks for one name. */
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { Field } from './field.tsx'
import { FormError } from './states.tsx'

interface NameDialogProps {
  readonly title: string
  readonly description?: string
  readonly hint?: string
  readonly maxLength: number
  /** What the button does. */
  readonly act: string
  /** Acts under the name. The dialog shows why it was refused. */
  onName(name: string): Promise<unknown>
  onClose(): void
}

export function NameDialog({ title, description, hint, maxLength, act, onName, onClose }: NameDialogProps) {
  const [name, setName] = useState('')
  const naming = useMutation({ mutationFn: () => onName(name) })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    naming.mutate()
  }
  return (
    <Dialog title={title} {...(description && { description })} isOpen onClose={onClose}>
      <form onSubmit={submit}>
        <Field
          label={t('Name')}
          hint={hint}
          required
          maxLength={maxLength}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        {naming.error && <FormError error={naming.error} />}
        <Actions>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="primary" isBusy={naming.isPending}>
            {act}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
