/** The navigation of a narrow screen, over the page. */
import { Dialog } from '@base-ui/react/dialog'
import type { ReactNode } from 'react'
import { t } from '../i18n.ts'

interface MenuProps {
  onClose(): void
  readonly children: ReactNode
}

export const Menu = ({ onClose, children }: MenuProps) => (
  <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
    <Dialog.Portal>
      <Dialog.Backdrop className="fixed inset-0 bg-shade" />
      <Dialog.Popup
        aria-label={t('Menu')}
        className="fixed inset-y-0 left-0 w-72 max-w-[85vw] border-line border-r bg-surface"
      >
        {children}
      </Dialog.Popup>
    </Dialog.Portal>
  </Dialog.Root>
)
