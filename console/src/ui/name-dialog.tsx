/** A dialog that asks for one name. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { Changed } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Dialog } from './dialog.tsx'
import { DialogForm, Field } from './form.tsx'

interface NameDialogProps {
  readonly title: string
  readonly description?: string
  readonly hint?: string
  readonly maxLength: number
  /** The name that it has; default: none. */
  readonly former?: string
  /** What the button does. */
  readonly act: string
  /** The paths of what the act changes. */
  readonly changes?: readonly Changed[]
  /** Acts under the name. The dialog shows why it was refused. */
  onName(name: string): Promise<unknown>
  onClose(): void
}

export function NameDialog({
  title,
  description,
  hint,
  maxLength,
  former = '',
  act,
  changes,
  onName,
  onClose,
}: NameDialogProps) {
  const [name, setName] = useState(former)
  const naming = useMutation({ meta: { changes }, mutationFn: () => onName(name) })
  return (
    <Dialog title={title} description={description} onClose={onClose}>
      <DialogForm sends={naming} act={act} onClose={onClose}>
        <Field label={t('Name')} hint={hint} required maxLength={maxLength} value={name} onText={setName} />
      </DialogForm>
    </Dialog>
  )
}
