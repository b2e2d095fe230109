/** A dialog that asks for one name. */

import { useMutation } from '@tanstack/react-query'
import type { Changed } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Dialog } from './dialog.tsx'
import { useFields } from './fields.ts'
import { DialogForm, Field } from './form.tsx'

interface NameDialogProps {
  readonly title: string
  readonly description?: string
  readonly hint?: string
  readonly maxLength: number
  /** The current name; default: none. */
  readonly former?: string
  /** The text of the button. */
  readonly submit: string
  /** The paths of what it changes. */
  readonly changes?: readonly Changed[]
  /** Called with the name. The dialog shows why it was refused. */
  onName(name: string): Promise<unknown>
  onClose(): void
}

export function NameDialog({
  title,
  description,
  hint,
  maxLength,
  former = '',
  submit,
  changes,
  onName,
  onClose,
}: NameDialogProps) {
  const form = useFields(title, { name: former })
  const naming = useMutation({ meta: { changes }, mutationFn: () => onName(form.values.name) })
  return (
    <Dialog title={title} description={description} onClose={onClose}>
      <DialogForm sends={naming} fields={form} submit={submit}>
        <Field label={t('Name')} hint={hint} required maxLength={maxLength} {...form.field('name')} />
      </DialogForm>
    </Dialog>
  )
}
