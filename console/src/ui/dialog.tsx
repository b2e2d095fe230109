/** Dialogs: a form or a question in front of the page, and the question that is answered by typing. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useLingui } from '@lingui/react'
import { type ReactNode, useState } from 'react'
import { t } from '../i18n.ts'
import { Field } from './field.tsx'
import { DialogForm, type DialogFormProps } from './form.tsx'

interface DialogProps {
  readonly title: string
  readonly description?: string
  /** Default: true. */
  readonly isOpen?: boolean
  onClose(): void
  readonly children: ReactNode
}

export const Dialog = ({ title, description, isOpen = true, onClose, children }: DialogProps) => (
  <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
    <Base.Portal>
      <Base.Backdrop className="fixed inset-0 bg-shade" />
      <Base.Popup className="fixed inset-x-4 top-[8vh] mx-auto max-h-[84vh] max-w-lg overflow-y-auto rounded-lg border border-line bg-surface p-5 shadow-xl">
        <Base.Title className="font-semibold text-lg">{title}</Base.Title>
        {description && <Base.Description className="mt-1 text-quiet">{description}</Base.Description>}
        <div className="mt-4">{children}</div>
      </Base.Popup>
    </Base.Portal>
  </Base.Root>
)

interface ConfirmProps {
  readonly title: string
  /** What is lost. */
  readonly description: string
  /** What is destroyed: its name must be typed. */
  readonly name: string
  readonly act: string
  /** How far the act is. A dialog that is opened again shows no refusal of before. */
  readonly acts: Omit<DialogFormProps['sends'], 'mutate'> & { reset(): void }
  onClose(): void
  onConfirm(): void
}

/** Returns the text as a reader types it: a page shows spaces in a row as one. */
const asTyped = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim()

/** Asks before something is destroyed: its name has to be typed. */
export function ConfirmByTyping({ title, description, name, act, acts, onClose, onConfirm }: ConfirmProps) {
  useLingui()
  const [typed, setTyped] = useState('')
  const isConfirmed = asTyped(typed) === asTyped(name)
  const sends = { ...acts, mutate: () => isConfirmed && onConfirm() }
  const close = () => {
    acts.reset()
    onClose()
  }
  return (
    <Dialog title={title} description={description} onClose={close}>
      <DialogForm sends={sends} act={act} kind="danger" isDisabled={!isConfirmed} onClose={close}>
        <Field
          label={t('Type {name} to confirm', { name })}
          value={typed}
          autoComplete="off"
          onText={setTyped}
        />
      </DialogForm>
    </Dialog>
  )
}
