/** Dialogs and drawers, and the buttons that open them or run an operation. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useMemo, useRef, useState } from 'react'
import type { Changed } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Button, type ButtonProps } from './button.tsx'
import { type Fields, OpenDialogContext } from './fields.ts'
import { Actions, DialogForm, Field } from './form.tsx'
import { FormError } from './states.tsx'

/** Closes a dialog, but asks first if a form in it has changed. */
function useCarefulClose(onClose: () => void) {
  const forms = useRef(new Set<Fields>()).current
  const [isAsking, setAsking] = useState(false)
  const closing = useRef(onClose)
  closing.current = onClose
  const dialog = useMemo(() => {
    const close = () => ([...forms].some(({ isChanged }) => isChanged) ? setAsking(true) : closing.current())
    return { forms, close }
  }, [forms])
  const discard = () => {
    for (const fields of forms) fields.forget()
    setAsking(false)
    closing.current()
  }
  const question = isAsking && (
    <Dialog
      title={t('Discard what you typed?')}
      description={t('It has not been sent.')}
      onClose={() => setAsking(false)}
    >
      <Actions>
        <Button onClick={() => setAsking(false)}>{t('Keep editing')}</Button>
        <Button kind="danger" onClick={discard}>
          {t('Discard')}
        </Button>
      </Actions>
    </Dialog>
  )
  return { dialog, question }
}

interface DialogProps {
  readonly title: string
  readonly description?: string | null
  /** Default: true. */
  readonly isOpen?: boolean
  /** For code and tables. */
  readonly isWide?: boolean
  onClose(): void
  readonly children: ReactNode
}

export function Dialog({
  title,
  description,
  isOpen = true,
  isWide = false,
  onClose,
  children,
}: DialogProps) {
  const { dialog, question } = useCarefulClose(onClose)
  return (
    // A press outside would lose what was typed, or a secret that is shown once.
    <Base.Root disablePointerDismissal open={isOpen} onOpenChange={(open) => !open && dialog.close()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 bg-shade" />
        <Base.Popup
          className={`fixed inset-x-4 top-[8vh] mx-auto max-h-[84vh] overflow-y-auto rounded-lg border border-line bg-surface p-5 shadow-xl ${isWide ? 'max-w-3xl' : 'max-w-lg'}`}
        >
          <Base.Title className="font-semibold text-lg">{title}</Base.Title>
          {description && <Base.Description className="mt-1 text-quiet">{description}</Base.Description>}
          <OpenDialogContext value={dialog}>
            <div className="mt-4">{children}</div>
          </OpenDialogContext>
          {question}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface DrawerProps {
  readonly title: string
  readonly isOpen: boolean
  onClose(): void
  readonly children: ReactNode
}

/** A drawer on the right: one record of the page, in full. */
export function Drawer({ title, isOpen, onClose, children }: DrawerProps) {
  const { dialog, question } = useCarefulClose(onClose)
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && dialog.close()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 bg-shade" />
        <Base.Popup className="fixed inset-y-0 right-0 flex w-[42rem] max-w-full flex-col border-line border-l bg-page shadow-xl">
          <div className="flex items-center justify-between gap-3 border-line border-b bg-surface px-4 py-3">
            <Base.Title className="truncate font-semibold text-lg">{title}</Base.Title>
            <Button kind="quiet" onClick={dialog.close}>
              {t('Close')}
            </Button>
          </div>
          <OpenDialogContext value={dialog}>
            <div className="flex flex-1 flex-col gap-4 overflow-y-auto p-4">{children}</div>
          </OpenDialogContext>
          {question}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface DialogButtonProps extends Omit<ButtonProps, 'onClick'> {
  /** Renders the dialog while it is open. */
  dialog(onClose: () => void): ReactNode
}

/** A button that opens a dialog. */
export function DialogButton({ dialog, ...button }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      {isOpen && dialog(() => setOpen(false))}
    </>
  )
}

interface Question {
  readonly title: string
  /** What is lost. */
  readonly description: string
  /** The name of what is destroyed: the user must type it. */
  readonly name: string
  /** The text of the button. */
  readonly submit: string
}

interface ActionProps<Answer> extends Omit<ButtonProps, 'onClick'> {
  /** Asked before something is destroyed. */
  readonly confirm?: Question
  /** The notice of success. */
  readonly done?: string
  /** The paths of what it changes. */
  readonly changes?: readonly Changed[]
  /** Sends the request; a second one with the same key changes nothing. */
  run(idempotencyKey: string): Promise<Answer>
  onDone?(answer: Answer): unknown
}

/** A button that runs an operation, if needed after a confirmation, and shows why it was refused. */
export function Action<Answer>({
  confirm,
  done,
  changes,
  run,
  onDone,
  isBusy = false,
  ...button
}: ActionProps<Answer>) {
  const [isAsking, setAsking] = useState(false)
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const action = useMutation({
    meta: { done, changes },
    mutationFn: () => run(idempotencyKey),
    onSuccess: (answer) => {
      setIdempotencyKey(crypto.randomUUID())
      setAsking(false)
      return onDone?.(answer)
    },
  })
  if (confirm)
    return (
      <>
        <Button
          {...button}
          onClick={() => {
            action.reset()
            setAsking(true)
          }}
        />
        {isAsking && <ConfirmDialog {...confirm} sends={action} onClose={() => setAsking(false)} />}
      </>
    )
  return (
    <>
      <Button {...button} isBusy={isBusy || action.isPending} onClick={() => action.mutate()} />
      {action.error && (
        <div className="min-w-48 basis-full whitespace-normal">
          <FormError error={action.error} />
        </div>
      )}
    </>
  )
}

interface ConfirmDialogProps extends Question, Pick<Parameters<typeof DialogForm>[0], 'sends'> {
  onClose(): void
}

/** Normalizes spaces: a page shows several in a row as one, and the user types one. */
const normalize = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim()

function ConfirmDialog({ title, description, name, submit, sends, onClose }: ConfirmDialogProps) {
  const [typed, setTyped] = useState('')
  const isConfirmed = normalize(typed) === normalize(name)
  return (
    <Dialog title={title} description={description} onClose={onClose}>
      <DialogForm
        sends={{ ...sends, mutateAsync: async () => isConfirmed && sends.mutateAsync() }}
        submit={submit}
        kind="danger"
        isDisabled={!isConfirmed}
      >
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
