from dedup.detector import Detector
