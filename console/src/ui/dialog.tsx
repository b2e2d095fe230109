/** Dialogs: a form or a question in front of the page, and the question that is answered by typing. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useLingui } from '@lingui/react'
import { type ReactNode, useState } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Field } from './field.tsx'
import { FormError } from './states.tsx'

interface DialogProps {
  readonly title: string
  readonly description?: string
  readonly isOpen: boolean
  onClose(): void
  readonly children: ReactNode
}

export const Dialog = ({ title, description, isOpen, onClose, children }: DialogProps) => (
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

/** The buttons at the end of a dialog. */
export const Actions = ({ children }: { readonly children: ReactNode }) => (
  <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>
)

interface ConfirmProps {
  readonly title: string
  /** What is lost. */
  readonly description: string
  /** What is destroyed: its name must be typed. */
  readonly name: string
  readonly act: string
  readonly isOpen: boolean
  readonly isBusy?: boolean
  /** Why it was refused. */
  readonly error?: Error | null
  onClose(): void
  onConfirm(): void
}

/** Asks before something is destroyed: its name has to be typed. */
export function ConfirmByTyping({
  title,
  description,
  name,
  act,
  isOpen,
  isBusy = false,
  error = null,
  ...on
}: ConfirmProps) {
  useLingui()
  const [typed, setTyped] = useState('')
  return (
    <Dialog title={title} description={description} isOpen={isOpen} onClose={on.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (typed === name) on.onConfirm()
        }}
      >
        <Field
          label={t('Type {name} to confirm', { name })}
          value={typed}
          autoComplete="off"
          onChange={(event) => setTyped(event.target.value)}
        />
        {error && <FormError error={error} />}
        <Actions>
          <Button onClick={on.onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="danger" disabled={typed !== name} isBusy={isBusy}>
            {act}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
