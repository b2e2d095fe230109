/** Dialogs and drawers in front of the page, and the button whose question is answered by typing. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { type MutationMeta, useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { t } from '../i18n.ts'
import { Button, type ButtonKind } from './button.tsx'
import { DialogForm, Field } from './form.tsx'

interface DialogProps {
  readonly title: string
  readonly description?: string | null
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
  /** What is done, on the button that opens the dialog and on that of the dialog. */
  readonly act: string
  /** On the button that opens the dialog, where it says more. */
  readonly label?: string
  readonly kind?: ButtonKind
  readonly meta: MutationMeta
  /** Acts. The dialog shows why it was refused. */
  onConfirm(): Promise<unknown>
  /** Called when it is done and the dialog is closed. */
  onDone?(): unknown
}

/** Returns the text as a reader types it: a page shows spaces in a row as one. */
const asTyped = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim()

function ConfirmDialog({ onClose, ...confirmed }: ConfirmProps & { onClose(): void }) {
  const { title, description, name, act, meta, onConfirm, onDone } = confirmed
  const [typed, setTyped] = useState('')
  const isConfirmed = asTyped(typed) === asTyped(name)
  const confirm = useMutation({
    meta,
    mutationFn: onConfirm,
    onSuccess: () => {
      onClose()
      return onDone?.()
    },
  })
  const sends = { ...confirm, mutate: () => isConfirmed && confirm.mutate() }
  return (
    <Dialog title={title} description={description} onClose={onClose}>
      <DialogForm sends={sends} act={act} kind="danger" isDisabled={!isConfirmed} onClose={onClose}>
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

/** A button that asks before it destroys something: its name has to be typed. */
export function ConfirmButton({ label, kind = 'quiet', ...confirmed }: ConfirmProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)}>
        {label ?? confirmed.act}
      </Button>
      {isOpen && <ConfirmDialog {...confirmed} onClose={() => setOpen(false)} />}
    </>
  )
}

interface DrawerProps {
  readonly title: string
  readonly isOpen: boolean
  onClose(): void
  readonly children: ReactNode
}

export function Drawer({ title, isOpen, onClose, children }: DrawerProps) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 bg-shade" />
        <Base.Popup className="fixed inset-y-0 right-0 flex w-[42rem] max-w-full flex-col border-line border-l bg-page shadow-xl">
          <div className="flex items-center justify-between gap-3 border-line border-b bg-surface px-4 py-3">
            <Base.Title className="truncate font-semibold text-lg">{title}</Base.Title>
            <Button kind="quiet" onClick={onClose}>
              {t('Close')}
            </Button>
          </div>
          <div className="flex flex-1 flex-col gap-4 overflow-y-auto p-4">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}
