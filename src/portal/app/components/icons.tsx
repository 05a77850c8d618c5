/**
 * The icons of the page. They are decoration: screen readers skip them, and the text next to an icon
 * says the same. Only those that are named here become part of the page.
 */

export {
  Activity,
  Check,
  ChevronLeft,
  ChevronRight,
  CircleAlert,
  Clock,
  Copy,
  Ellipsis,
  FileText,
  Image,
  Menu,
  Monitor,
  Moon,
  Newspaper,
  Plus,
  RotateCcw,
  Search,
  Send,
  Sun,
  Tags,
  TriangleAlert,
  Users,
  Webhook,
  X,
} from "lucide-preact";
