/** A drawer at the right side: one record of the page, in full. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useLingui } from '@lingui/react'
import type { ReactNode } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'

interface DrawerProps {
  readonly title: string
  readonly isOpen: boolean
  onClose(): void
  readonly children: ReactNode
}

export function Drawer({ title, isOpen, onClose, children }: DrawerProps) {
  useLingui()
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
