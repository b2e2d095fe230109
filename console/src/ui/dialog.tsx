/** Dialogs and drawers, and the buttons that open them or run an operation. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useMutation } from '@tanstack/react-query'
import { Children, type ReactNode, useMemo, useRef, useState } from 'react'
import { isSameTyped } from '../../../src/core/confirmation.ts'
import type { Changed } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Button, type ButtonProps } from './button.tsx'
import { type Fields, OpenDialogContext } from './fields.ts'
import { Actions, DialogForm, Field } from './form.tsx'
import { useMedia } from './media.ts'
import { FormError, Skeleton } from './states.tsx'

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
  /** True if the page stays beside it, in use, where there is room for both. */
  readonly isBeside?: boolean
  onClose(): void
  readonly children: ReactNode
}

const HAS_ROOM = matchMedia('(min-width: 80rem)')

/** A drawer on the right: one record of the page, in full. */
export function Drawer({ title, isOpen, isBeside = false, onClose, children }: DrawerProps) {
  const { dialog, question } = useCarefulClose(onClose)
  const stays = useMedia(HAS_ROOM) && isBeside
  return (
    <Base.Root
      modal={!stays}
      disablePointerDismissal={stays}
      open={isOpen}
      onOpenChange={(open) => !open && dialog.close()}
    >
      <Base.Portal>
        {!stays && <Base.Backdrop className="fixed inset-0 bg-shade" />}
        <Base.Popup
          className={`fixed inset-y-0 right-0 flex max-w-full flex-col border-line border-l bg-page shadow-xl ${stays ? 'beside' : 'w-[42rem]'}`}
        >
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

/**
 * What is asked before an operation. The question is as strong as the operation is dangerous: `effects` say what it does,
 * and a `name` has to be typed where `readTyped` names one.
 */
export interface Question {
  readonly title: string
  readonly description?: string
  /** What it does now, each in a sentence. */
  readonly effects?: readonly ReactNode[]
  readonly name?: string
  /** The text of the button. */
  readonly submit: string
}

interface ActionProps<Answer> extends Omit<ButtonProps, 'onClick'> {
  readonly confirm?: Question
  /** Instead of `confirm`: renders what reads the effects of the operation, and asks. A null question is not known yet. */
  readonly confirmWith?: (ask: (question: Question | null) => ReactNode) => ReactNode
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
  confirmWith,
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
  const close = () => setAsking(false)
  const ask = (question: Question | null) =>
    question === null ? (
      <Preparing onClose={close} />
    ) : (
      <ConfirmDialog {...question} sends={action} onClose={close} />
    )
  if (confirm || confirmWith)
    return (
      <>
        <Button
          {...button}
          onClick={() => {
            action.reset()
            setAsking(true)
          }}
        />
        {isAsking && (confirmWith ? confirmWith(ask) : ask(confirm ?? null))}
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

interface Confirms extends Pick<Parameters<typeof DialogForm>[0], 'sends'> {
  onClose(): void
}

const Preparing = ({ onClose }: Pick<Confirms, 'onClose'>) => (
  <Dialog title={t('Loading')} onClose={onClose}>
    <Skeleton rows={3} />
  </Dialog>
)

export function ConfirmDialog({
  title,
  description,
  effects = [],
  name,
  submit,
  sends,
  onClose,
}: Question & Confirms) {
  const [typed, setTyped] = useState('')
  const isConfirmed = name === undefined || isSameTyped(typed, name)
  return (
    <Dialog title={title} description={description} onClose={onClose}>
      <DialogForm
        sends={{ ...sends, mutateAsync: async () => isConfirmed && sends.mutateAsync() }}
        submit={submit}
        kind="danger"
        isDisabled={!isConfirmed}
      >
        {effects.length > 0 && (
          <ul className="flex flex-col gap-1 rounded-md border border-warn bg-warn-wash p-3 text-sm">
            {Children.map(effects, (effect) => (
              <li>{effect}</li>
            ))}
          </ul>
        )}
        {name !== undefined && (
          <Field
            label={t('Type {name} to confirm', { name })}
            value={typed}
            autoComplete="off"
            onText={setTyped}
          />
        )}
      </DialogForm>
    </Dialog>
  )
}
