/** Routes below `/v1/videos`. */
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  type AvatarPresetsDeps,
  deleteAvatar,
  listAvatarPresets,
  listAvatars,
  registerAvatar,
  showAvatar,
} from '../../../pipelines/media/videos/avatars.ts'
import {
  type ClipDeps,
  listClipCategories,
  listClipTemplates,
  recogniseSubtitles,
  showSubtitles,
} from '../../../pipelines/media/videos/clips.ts'
import {
  type MakeVideoDeps,
  makeVideo,
  type VideoTaskDeps,
  videoTasks,
} from '../../../pipelines/media/videos/videos.ts'
import { type RoutedPath, routed } from './routed.ts'

export type VideoRouteDeps = MakeVideoDeps &
  VideoTaskDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  AvatarPresetsDeps &
  ClipDeps

export function videoRoutes(deps: VideoRouteDeps): readonly RoutedPath[] {
  const videos = videoTasks(deps)
  return [
    routed('/v1/videos/generations', { POST: makeVideo(deps), GET: videos.list }),
    routed('/v1/videos/generations/{id}', { GET: videos.show, DELETE: videos.cancel }),
    routed('/v1/videos/generations/{id}/files', { DELETE: deleteFiles(deps, 'video') }),
    routed('/v1/videos/avatars', { POST: registerAvatar(deps), GET: listAvatars(deps) }),
    routed('/v1/videos/avatars/presets', { GET: listAvatarPresets(deps) }),
    routed('/v1/videos/avatars/{id}', { GET: showAvatar(deps), DELETE: deleteAvatar(deps) }),
    routed('/v1/videos/clip-templates', { GET: listClipTemplates(deps) }),
    routed('/v1/videos/clip-templates/categories', { GET: listClipCategories(deps) }),
    routed('/v1/videos/clip-subtitles', { POST: recogniseSubtitles(deps) }),
    routed('/v1/videos/clip-subtitles/{id}', { GET: showSubtitles(deps) }),
  ]
}
